"""Static rules of the family removed."""
