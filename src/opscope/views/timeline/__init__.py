"""For Chrome and Perfetto."""
