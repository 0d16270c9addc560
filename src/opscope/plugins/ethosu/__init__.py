"""Of the plug-in ethosu."""
