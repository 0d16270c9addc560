"""The backend torq: the vendor's own compiler and its functional simulator."""
