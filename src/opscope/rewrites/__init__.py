"""Rewrites: changes to a model file that leave what it computes as it was, searched for and proven."""
