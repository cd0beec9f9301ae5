"""Static rules of the family generation."""
