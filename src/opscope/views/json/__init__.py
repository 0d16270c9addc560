"""For programs."""
