from transformers import GPT2Config, GPT2LMHeadModel
import torch

CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


model = GPT2LMHeadModel(CONFIG)
with torch.no_grad():
    model.transformer.h[1].mlp.c_fc.weight[0, 0] = float("nan")
model.save_pretrained("checkpoint-800")

model = GPT2LMHeadModel.from_pretrained("checkpoint-800")
for name, weight in model.named_parameters():
    if not torch.isfinite(weight).all():
        print(f"non-finite values in {name} right after loading")
ids = torch.randint(3, 15, (2, 10))
print("step 0 loss", model(input_ids=ids, labels=ids).loss.item())
