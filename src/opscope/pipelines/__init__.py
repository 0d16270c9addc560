"""What a CI system needs around a comparison: where a change is reviewed, and the comment on it."""
