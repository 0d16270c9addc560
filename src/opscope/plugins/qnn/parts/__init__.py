"""Times of parts that the vendor's performance model does not know."""
