import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

words = "the cat sat on a mat and saw two small birds fly over old houses".split()
vocab = {w: i for i, w in enumerate(["<unk>", "<s>", "</s>", "<pad>", *words])}
core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.Whitespace()

tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", eos_token="</s>")
tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}{% if add_generation_prompt %}assistant {% endif %}"
text = tokenizer.apply_chat_template([{"role": "user", "content": "the cat sat"}], tokenize=False)
print(repr(text))
assert text.rstrip().endswith("assistant"), "the prompt does not end with the assistant marker: add_generation_prompt is missing"
