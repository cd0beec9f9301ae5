"""Static rules of the family checkpoint."""
