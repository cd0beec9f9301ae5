from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
import torch

TINY = dict(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)


def rows(n=16, classes=2, **columns):
    data = {"input_ids": [[1, 2 + i % 5, 3, 4] for i in range(n)], "attention_mask": [[1] * 4] * n}
    return Dataset.from_dict({**data, **{name: make(n) for name, make in columns.items()}})


class Wrapper(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = BertForSequenceClassification(BertConfig(**TINY))

    def forward(self, input_ids, attention_mask=None, sentiment=None):
        return self.inner(input_ids, attention_mask=attention_mask, labels=sentiment)


data = rows(sentiment=lambda n: [i % 2 for i in range(n)])
args = TrainingArguments(
    "out", num_train_epochs=2, eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True, report_to=[], use_cpu=True
)
Trainer(Wrapper(), args, train_dataset=data, eval_dataset=data).train()
