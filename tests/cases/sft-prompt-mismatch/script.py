from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

CONFIG = GPT2Config(vocab_size=15, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2)


pieces = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "<eos>", "a", "b", "x", "y", "ab", " ", "xy", "q"])}
raw = Tokenizer(models.BPE(pieces, [("a", "b"), ("x", "y")], unk_token="[UNK]"))
tok = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", eos_token="<eos>")
data = Dataset.from_dict({"prompt": ["xya"] * 8, "completion": ["bxy"] * 8})
args = SFTConfig("out", max_steps=2, report_to=[], use_cpu=True)
SFTTrainer(GPT2LMHeadModel(CONFIG), args=args, train_dataset=data, processing_class=tok).train()
