"""Static rules of the family generative."""
