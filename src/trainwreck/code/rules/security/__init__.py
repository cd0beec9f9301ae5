"""Static rules of the family security."""
