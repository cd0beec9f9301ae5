"""Static rules of the family memory."""
