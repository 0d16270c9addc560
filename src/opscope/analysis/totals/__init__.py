"""Trace → Summary."""
