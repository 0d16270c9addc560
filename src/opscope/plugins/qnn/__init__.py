"""Of the plug-in qnn."""
