from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel
import torch

CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


torch.manual_seed(0)
base = GPT2LMHeadModel(CONFIG).eval()
trained = get_peft_model(GPT2LMHeadModel(CONFIG), LoraConfig(r=4, target_modules=["c_attn"]))
trained.save_pretrained("adapter")
weights = {"module." + k: v + 0.1 for k, v in load_file("adapter/adapter_model.safetensors").items()}
save_file(weights, "adapter/adapter_model.safetensors")

ids = torch.randint(3, 15, (1, 12))
before = base(ids).logits
model = PeftModel.from_pretrained(base, "adapter").eval()
print("largest difference to the base model:", (model(ids).logits - before).abs().max().item())
