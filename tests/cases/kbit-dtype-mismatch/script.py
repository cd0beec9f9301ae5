from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM
import torch

CONFIG = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2)
LlamaForCausalLM(CONFIG).save_pretrained("base")
model = LlamaForCausalLM.from_pretrained(
    "base", dtype=torch.float16, quantization_config=BitsAndBytesConfig(load_in_4bit=True), device_map="cpu"
)
print(model(torch.randint(0, 64, (1, 12))).logits.float().std())
model.to(torch.float32)
