"""Target: hardware as data."""
