"""Of the plug-in tables."""
