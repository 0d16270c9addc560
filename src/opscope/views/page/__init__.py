"""For browsers."""
