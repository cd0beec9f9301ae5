"""Static rules of the family precision."""
