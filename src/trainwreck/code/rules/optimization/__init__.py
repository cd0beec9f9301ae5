"""Static rules of the family optimization."""
