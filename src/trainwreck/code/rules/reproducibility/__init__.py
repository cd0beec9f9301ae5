"""Static rules of the family reproducibility."""
