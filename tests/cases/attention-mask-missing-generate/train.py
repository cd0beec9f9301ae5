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

tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", eos_token="</s>", pad_token="</s>", padding_side="left")
model.generation_config.pad_token_id = model.generation_config.eos_token_id
batch = tokenizer(["the cat", "two small birds fly over"], padding=True, return_tensors="pt")
out = model.generate(batch["input_ids"], max_new_tokens=5, do_sample=False)
print(tokenizer.batch_decode(out))
