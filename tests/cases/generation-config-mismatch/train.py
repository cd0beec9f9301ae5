import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

words = "the cat sat on a mat and saw two small birds fly over old houses".split()
vocab = {w: i for i, w in enumerate(["<unk>", "<s>", "</s>", "<pad>", *words])}
core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.Whitespace()

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                     num_attention_heads=4, bos_token_id=1, eos_token_id=2, pad_token_id=3)).eval()

model.generation_config.max_length = 20
prompt = torch.randint(4, 60, (1, 30))
out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False)
print("new tokens", out.shape[1] - prompt.shape[1])
