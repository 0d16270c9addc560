"""Reports of small graphs, and rows that were measured."""
