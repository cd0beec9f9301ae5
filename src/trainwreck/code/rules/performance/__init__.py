"""Static rules of the family performance."""
