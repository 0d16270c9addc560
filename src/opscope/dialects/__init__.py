"""Vendors' command lines → calls of ours: tables from their words to our parameters, one module per vendor."""
