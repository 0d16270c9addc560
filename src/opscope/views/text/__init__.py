"""For terminals and logs."""
