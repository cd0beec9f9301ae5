from datasets import Dataset
from transformers import Trainer, TrainingArguments
import torch


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 8)
        self.head = torch.nn.Linear(8, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, input_ids, labels=None):
        logits = self.head(self.embed(input_ids))
        return {"loss": torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), "logits": logits}


data = Dataset.from_dict({"input_ids": [[1, 2, 3]] * 8, "labels": [[1, 2, 3]] * 8})
Trainer(Tied(), TrainingArguments("out", max_steps=2, save_steps=1, report_to=[], use_cpu=True), train_dataset=data).train()
