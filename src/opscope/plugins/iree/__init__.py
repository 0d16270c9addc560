"""Of the plug-in iree."""
