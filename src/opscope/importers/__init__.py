"""Vendor file → Trace or Summary: one module per format."""
