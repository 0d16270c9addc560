"""Of the plug-in annotate."""
