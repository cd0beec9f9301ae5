"""Static rules of the family deepspeed."""
