"""Which chip for a model: every compiler, runtime and target that can tell about it, side by side."""
