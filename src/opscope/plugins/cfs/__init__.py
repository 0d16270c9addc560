"""Of the plug-in cfs."""
