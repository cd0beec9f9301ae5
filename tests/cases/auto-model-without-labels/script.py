from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModel, GPT2Config
from transformers import PreTrainedTokenizerFast
import torch


def tokenizer():
    words = ["[PAD]", "[UNK]", "<eos>", "a", "b", "c", "good", "bad", "film", "plot", "question", "answer", ":", "1", "2"]
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", eos_token="<eos>")


model = AutoModel.from_config(GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=1, n_head=2))
ids = torch.randint(3, 15, (2, 10))
loss = model(input_ids=ids, labels=ids).loss
