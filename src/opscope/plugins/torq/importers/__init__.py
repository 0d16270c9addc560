"""Of the plug-in importers."""
