"""Of the plug-in rknn."""
