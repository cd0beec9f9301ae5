from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast


def tokenizer():
    words = ["[PAD]", "[UNK]", "<eos>", "a", "b", "c", "good", "bad", "film", "plot", "question", "answer", ":", "1", "2"]
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", eos_token="<eos>")


tok = tokenizer()
tok.model_max_length = 16
ids = tok(" ".join(["good film bad plot"] * 20))["input_ids"]
print(len(ids))
