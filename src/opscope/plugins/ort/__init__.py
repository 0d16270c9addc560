"""Of the plug-in ort."""
