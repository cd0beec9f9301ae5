"""Static rules of the family autograd."""
