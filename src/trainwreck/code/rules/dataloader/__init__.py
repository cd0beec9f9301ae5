"""Static rules of the family dataloader."""
