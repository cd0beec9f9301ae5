from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel
import torch

CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


lora = LoraConfig(r=4, target_modules=["c_attn"])
model = get_peft_model(GPT2LMHeadModel(CONFIG), lora)
model = get_peft_model(model, LoraConfig(r=8, target_modules=["c_fc"]))
model.print_trainable_parameters()
