"""What if: a change made, and what it comes to."""
