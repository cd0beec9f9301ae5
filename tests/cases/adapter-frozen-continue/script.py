from peft import LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel
import torch

CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


get_peft_model(GPT2LMHeadModel(CONFIG), LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM")).save_pretrained("adapter")
model = PeftModel.from_pretrained(GPT2LMHeadModel(CONFIG), "adapter")
model.print_trainable_parameters()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
ids = torch.randint(3, 15, (4, 12))
for step in range(3):
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
