"""Of the plug-in nvidia."""
