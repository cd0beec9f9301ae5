"""Static rules of the family evaluation."""
