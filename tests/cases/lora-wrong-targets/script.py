from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


model = get_peft_model(GPT2LMHeadModel(CONFIG), LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
