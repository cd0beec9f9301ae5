"""Static rules of the family lightning."""
