"""Of the plug-in traces."""
