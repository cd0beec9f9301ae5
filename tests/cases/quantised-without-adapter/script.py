from datasets import Dataset
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
import torch

CONFIG = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2)
LlamaForCausalLM(CONFIG).save_pretrained("base")
model = LlamaForCausalLM.from_pretrained("base", quantization_config=BitsAndBytesConfig(load_in_4bit=True), device_map="cpu")
data = Dataset.from_dict({"input_ids": [[1, 2, 3, 4]] * 8, "labels": [[1, 2, 3, 4]] * 8})
Trainer(model, TrainingArguments("out", max_steps=2, report_to=[], use_cpu=True), train_dataset=data).train()
