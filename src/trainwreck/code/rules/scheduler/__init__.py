"""Static rules of the family scheduler."""
