"""Vendors and tools, one folder each."""
