"""STM32: reports of ST Edge AI Core, and what its test applications print on a board."""
