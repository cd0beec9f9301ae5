"""Static rules of the family device."""
