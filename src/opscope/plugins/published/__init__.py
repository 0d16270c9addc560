"""Of the plug-in published."""
