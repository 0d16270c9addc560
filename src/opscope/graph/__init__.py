"""Graph: the in-memory form of a model file."""
