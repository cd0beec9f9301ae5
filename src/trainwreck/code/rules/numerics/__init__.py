"""Static rules of the family numerics."""
