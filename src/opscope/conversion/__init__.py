"""Model file → the form that a compiler takes: the way found from data, every step kept, checked and named."""
