"""Static rules of the family quantization."""
