from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("./outputs/llama-sft-final")
