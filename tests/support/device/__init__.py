"""Programs by hand, and slow, obvious answers to what the simulated device says of them."""
