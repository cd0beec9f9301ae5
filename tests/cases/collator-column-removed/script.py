from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
import torch

TINY = dict(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)


def rows(n=16, classes=2, **columns):
    data = {"input_ids": [[1, 2 + i % 5, 3, 4] for i in range(n)], "attention_mask": [[1] * 4] * n}
    return Dataset.from_dict({**data, **{name: make(n) for name, make in columns.items()}})


model = BertForSequenceClassification(BertConfig(**TINY))
data = rows(labels=lambda n: [i % 2 for i in range(n)], sample_weight=lambda n: [1.0 + i % 3 for i in range(n)])


def collate(items):
    batch = {k: torch.tensor([item[k] for item in items]) for k in ("input_ids", "attention_mask", "labels")}
    batch["sample_weight"] = torch.tensor([item["sample_weight"] for item in items])
    return batch


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        weight = inputs.pop("sample_weight")
        out = model(**inputs)
        loss = (torch.nn.functional.cross_entropy(out.logits, inputs["labels"], reduction="none") * weight).mean()
        return (loss, out) if return_outputs else loss


args = TrainingArguments("out", max_steps=4, per_device_train_batch_size=8, report_to=[], use_cpu=True)
WeightedTrainer(model, args, train_dataset=data, data_collator=collate).train()
