from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers import EarlyStoppingCallback

TINY = dict(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)


def rows(n=16, classes=2, **columns):
    data = {"input_ids": [[1, 2 + i % 5, 3, 4] for i in range(n)], "attention_mask": [[1] * 4] * n}
    return Dataset.from_dict({**data, **{name: make(n) for name, make in columns.items()}})


model = BertForSequenceClassification(BertConfig(**TINY))
data = rows(labels=lambda n: [i % 2 for i in range(n)])
args = TrainingArguments(
    "out", num_train_epochs=3, eval_strategy="epoch", save_strategy="no", metric_for_best_model="macro_f1", report_to=[], use_cpu=True
)
Trainer(model, args, train_dataset=data, eval_dataset=data, callbacks=[EarlyStoppingCallback(1)]).train()
