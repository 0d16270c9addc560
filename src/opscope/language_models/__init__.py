"""Language models: first token, next token, does it fit; from the description of a model alone."""
