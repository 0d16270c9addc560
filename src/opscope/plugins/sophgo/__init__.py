"""Sophgo's chips: its compiler's schedule, as a backend and as files."""
