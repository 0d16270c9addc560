"""Of the plug-in executorch."""
