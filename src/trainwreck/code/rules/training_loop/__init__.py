"""Static rules of the family training-loop."""
