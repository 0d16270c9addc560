"""Compiled graphs, random ones too, and what must hold of every one."""
