"""What ops move: bytes through every memory, and between devices."""
