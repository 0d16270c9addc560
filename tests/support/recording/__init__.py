"""Runs by hand: the least that analysis, comparison, pages and the runtime need."""
