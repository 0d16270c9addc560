"""TensorFlow Lite Micro: the arena as its allocator plans it, the operators it takes, its interpreter and its logs."""
