"""Forms that runtimes give a graph: chains that run as one, planes of images."""
