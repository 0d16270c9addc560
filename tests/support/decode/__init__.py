"""Stats buffers, and slow, obvious answers to what is read from them."""
