from transformers import BertConfig, BertForSequenceClassification
import torch

model = BertForSequenceClassification(BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32))
model.generate(torch.randint(3, 15, (1, 4)), max_new_tokens=4)
