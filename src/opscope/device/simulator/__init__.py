"""Program → Timeline → Capture, event by event."""
