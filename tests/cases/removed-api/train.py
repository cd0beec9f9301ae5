from transformers import TrainingArguments

args = TrainingArguments("out", evaluation_strategy="steps", eval_steps=100)
print(args)
