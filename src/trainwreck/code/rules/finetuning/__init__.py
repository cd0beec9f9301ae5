"""Static rules of the family finetuning."""
