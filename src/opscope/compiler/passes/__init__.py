"""Passes over the plan."""
