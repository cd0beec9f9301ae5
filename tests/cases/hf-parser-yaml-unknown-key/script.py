from transformers import HfArgumentParser, TrainingArguments

with open("train.yaml", "w") as stream:
    stream.write("output_dir: out\nlearning_rate: 2.0e-5\nevaluation_strategy: epoch\n")
(args,) = HfArgumentParser(TrainingArguments).parse_yaml_file("train.yaml")
