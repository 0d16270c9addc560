"""Of the plug-in tenstorrent."""
