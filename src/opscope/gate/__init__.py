"""Results against limits → Verdict."""
