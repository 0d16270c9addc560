"""Graph, Target → what running it should take: pure arithmetic, no clock, no randomness."""
