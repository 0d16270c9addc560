"""Verbs about the program itself, where it is installed."""
