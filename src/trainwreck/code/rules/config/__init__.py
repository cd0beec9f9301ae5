"""Static rules of the family config: what configurations say."""
