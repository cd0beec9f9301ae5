"""Static rules of the family shape."""
