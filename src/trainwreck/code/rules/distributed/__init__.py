"""Static rules of the family distributed."""
