"""Rewrites of TensorFlow Lite models, on the schema's own tables with tensors and operators as objects."""
