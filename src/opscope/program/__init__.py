"""Program and Capture, and their bytes."""
