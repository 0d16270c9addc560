"""PyTorch as a runtime: a module is measured as it is."""
