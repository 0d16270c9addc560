"""Reports of small graphs, rows that were measured, and bytes that a step has to read."""
