"""The networks, one module each."""
