"""Static rules of the family serving."""
