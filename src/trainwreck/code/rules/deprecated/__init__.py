"""Static rules of the family deprecated."""
