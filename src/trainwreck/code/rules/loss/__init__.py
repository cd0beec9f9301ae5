"""Static rules of the family loss."""
