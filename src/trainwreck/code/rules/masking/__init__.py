"""Static rules of the family masking."""
