"""What-if: changes of a run, and what they come to."""
