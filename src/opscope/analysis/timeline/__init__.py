"""When what happened, and what held it back."""
