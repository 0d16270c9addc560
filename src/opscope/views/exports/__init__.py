"""Runs in the forms of other programs."""
