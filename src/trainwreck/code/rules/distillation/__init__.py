"""Static rules of the family distillation."""
