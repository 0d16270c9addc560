"""Files as the QNN tools leave them."""
