"""Static rules of the family torch."""
