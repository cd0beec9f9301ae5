"""Static rules of the family architecture."""
