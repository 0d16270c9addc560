"""Plan → commands."""
