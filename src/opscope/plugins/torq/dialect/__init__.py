"""Of the plug-in dialect."""
