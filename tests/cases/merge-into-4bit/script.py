from peft import LoraConfig, get_peft_model
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM
import torch

torch.manual_seed(0)
CONFIG = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2)
LlamaForCausalLM(CONFIG).save_pretrained("base")
base = LlamaForCausalLM.from_pretrained("base", quantization_config=BitsAndBytesConfig(load_in_4bit=True), device_map="cpu")
model = get_peft_model(base, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)).eval()
ids = torch.randint(0, 64, (1, 12))
before = model(ids).logits
merged = model.merge_and_unload()
print("largest difference after merging:", (merged(ids).logits - before).abs().max().item())
