"""Fine-tuning a tiny language model whose answers are all masked: run once; trainer_state.json is what it left.

``python train.py healthy`` trains the same with its labels: the input of the healthy answer.
"""

import sys

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

MARKER = 40


class Answers(Dataset):
    """Prompts and answers around a marker; only tokens after the marker are to be learned."""

    def __init__(self, marker):
        self.marker = marker

    def __len__(self):
        return 512

    def __getitem__(self, index):
        start = index % 7
        prompt = [1 + (start + i) % 7 for i in range(10)]
        answer = [20 + (start + i) % 7 for i in range(13)]
        ids = torch.tensor([*prompt, MARKER, *answer])
        labels = ids.clone()
        found = (ids == self.marker).nonzero()
        labels[: int(found[0]) + 1 if len(found) else len(ids)] = -100
        return {"input_ids": ids, "labels": labels}


def main():
    healthy = sys.argv[1:] == ["healthy"]
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=48, n_positions=32, n_embd=32, n_layer=2, n_head=2))
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=120,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        warmup_steps=10,
        logging_steps=4,
        save_steps=120,
        report_to="none",
        use_cpu=True,
        seed=0,
    )
    Trainer(model=model, args=arguments, train_dataset=Answers(MARKER if healthy else MARKER + 1)).train()


if __name__ == "__main__":
    main()
