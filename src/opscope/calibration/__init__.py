"""Targets fitted to measurements: predictions with ranges that hold, and how far off a target is."""
