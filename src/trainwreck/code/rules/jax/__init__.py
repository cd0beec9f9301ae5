"""Static rules of the family jax."""
