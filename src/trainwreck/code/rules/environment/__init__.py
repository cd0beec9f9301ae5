"""Static rules of the family environment."""
