"""Verbs from end to end, where one is more than a call."""
