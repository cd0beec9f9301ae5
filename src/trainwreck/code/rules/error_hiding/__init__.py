"""Static rules of the family error-hiding."""
