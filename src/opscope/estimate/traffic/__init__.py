"""Bytes of an inference: where weights lie, and through which memories the operands of an op travel."""
