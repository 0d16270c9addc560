"""Helpers shared by all verbs of the command line."""
