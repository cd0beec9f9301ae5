"""Static rules of the family cuda."""
