"""Of the plug-in torq."""
