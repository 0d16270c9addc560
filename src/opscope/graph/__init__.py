"""Graph: a model file, read."""
