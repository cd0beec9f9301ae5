"""Static rules of the family rl."""
