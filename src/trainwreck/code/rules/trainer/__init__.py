"""Static rules of the family trainer."""
