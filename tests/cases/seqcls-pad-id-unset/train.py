import torch
from transformers import LlamaConfig, LlamaForSequenceClassification

config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_labels=2)
model = LlamaForSequenceClassification(config)
out = model(torch.randint(5, 60, (4, 7)), labels=torch.tensor([0, 1, 0, 1]))
print(out.loss)
