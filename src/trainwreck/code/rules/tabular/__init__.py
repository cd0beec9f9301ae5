"""Static rules of the family tabular."""
