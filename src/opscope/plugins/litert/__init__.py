"""Of the plug-in litert."""
