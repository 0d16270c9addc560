"""Of the plug-in qaic."""
