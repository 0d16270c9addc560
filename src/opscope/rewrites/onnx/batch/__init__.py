"""A batch as so many samples, and samples as a batch."""
