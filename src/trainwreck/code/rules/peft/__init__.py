"""Static rules of the family peft."""
