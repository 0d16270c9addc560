"""Models before and after a rewrite, run side by side, and a search whose judge is simple."""
