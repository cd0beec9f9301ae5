import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

words = "the cat sat on a mat and saw two small birds fly over old houses".split()
vocab = {w: i for i, w in enumerate(["<unk>", "<s>", "</s>", "<pad>", *words])}
core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.Whitespace()

tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>")
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, correct_bias=False)
