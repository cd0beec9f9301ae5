from tokenizers import Tokenizer, models, pre_tokenizers, decoders
from transformers import PreTrainedTokenizerFast
from trl import DataCollatorForCompletionOnlyLM
import torch

pieces = ["[PAD]", "[UNK]", "\u2581#", "#", "##", "###", "\u2581", "\u2581a", "\u2581b", "\u2581###", "A", ":"]
raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(pieces)}, unk_token="[UNK]"))
raw.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Split(":", "isolated")])
tok = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]")
collate = DataCollatorForCompletionOnlyLM([3, 3, 3, 10, 11], tokenizer=tok)
batch = collate([tok("a b ### A: b"), tok("b a ### A: a")])
print("labels that count:", int((batch["labels"] != -100).sum()))
