"""Static rules of the family data."""
