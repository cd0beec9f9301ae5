from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer


def tokenizer():
    words = ["[PAD]", "[UNK]", "<eos>", "a", "b", "c", "good", "bad", "film", "plot", "question", "answer", ":", "1", "2"]
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", eos_token="<eos>")


CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


data = Dataset.from_dict({"text": ["question : a answer : b", "good film", "bad plot a b c"] * 24})
args = SFTConfig(
    "out", max_steps=4, packing=True, packing_strategy="wrapped", padding_free=True, max_length=16, logging_steps=1, report_to=[],
    use_cpu=True,
)
SFTTrainer(GPT2LMHeadModel(CONFIG), args=args, train_dataset=data, processing_class=tokenizer()).train()
