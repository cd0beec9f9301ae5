import torch
from datasets import Dataset
from transformers import Trainer, TrainingArguments


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.nn.Linear(2, 2)

    def forward(self, x, labels=None):
        return {"logits": self.f(x)}


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        out = model(inputs["x"])
        loss = torch.nn.functional.cross_entropy(out["logits"], inputs["labels"], weight=torch.tensor([1.0, 3.0]))
        return (loss, out) if return_outputs else loss


data = Dataset.from_dict({"x": [[0.0, 1.0]] * 16, "labels": [0, 1] * 8}).with_format("torch")
args = TrainingArguments("out", per_device_train_batch_size=4, report_to=[], use_cpu=True, max_steps=4)
WeightedTrainer(Net(), args, train_dataset=data).train()
