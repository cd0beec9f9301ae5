from transformers import AutoModel, GPT2Config
import torch

model = AutoModel.from_config(GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=1, n_head=2))
print(model.generate(torch.randint(3, 15, (1, 4)), max_new_tokens=4))
