from transformers import HfArgumentParser, TrainingArguments
import sys

sys.argv = ["train.py", "--output_dir", "out", "--evaluation_strategy", "epoch", "--learning_rate", "2e-5"]
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
