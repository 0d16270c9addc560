"""Arm Cortex-M: targets of micro-controllers by their core."""
