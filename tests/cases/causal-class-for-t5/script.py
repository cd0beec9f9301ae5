from transformers import AutoModelForCausalLM, T5Config

model = AutoModelForCausalLM.from_config(T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2))
