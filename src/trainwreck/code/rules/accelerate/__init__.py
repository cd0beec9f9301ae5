"""Static rules of the family accelerate."""
