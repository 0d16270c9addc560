"""Trace → Summary: one module per question."""
