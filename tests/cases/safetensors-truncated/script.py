from transformers import GPT2Config, GPT2LMHeadModel
import os

CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


GPT2LMHeadModel(CONFIG).save_pretrained("checkpoint-500")
os.truncate("checkpoint-500/model.safetensors", os.path.getsize("checkpoint-500/model.safetensors") - 4096)
model = GPT2LMHeadModel.from_pretrained("checkpoint-500")
