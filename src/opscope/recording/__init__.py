"""Run: the one profile, and its folder."""
