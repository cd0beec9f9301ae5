"""The rehearsal under Accelerate, Fabric, Lightning and a Hugging Face trainer: healthy programs stay silent, and one
edit of each is found at its line."""

from __future__ import annotations

import io

import pytest

from trainwreck.core.source import Source
from trainwreck.engine import check

HEAD = """\
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split
"""
LIGHTNING = """\
import lightning as L
class Data(L.LightningDataModule):
    def setup(self, stage):
        g = torch.Generator().manual_seed(0)
        x = torch.randn(500, 10, generator=g)
        self.train, self.val = random_split(TensorDataset(x, (x.sum(1) > 0).long()), [400, 100], generator=g)
    def train_dataloader(self):
        return DataLoader(self.train, batch_size=16, shuffle=True)
    def val_dataloader(self):
        return DataLoader(self.val, batch_size=16)
class Lit(L.LightningModule):
    def __init__(self, width=32, lr=1e-3, total=1000):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 2))
    def shared(self, batch):
        x, y = batch
        logits = self.net(x)
        return F.cross_entropy(logits, y), (logits.argmax(-1) == y).float().mean()
    def training_step(self, batch, idx):
        loss, acc = self.shared(batch)
        self.log_dict({"loss": loss, "acc": acc}, prog_bar=True)
        return loss
    def validation_step(self, batch, idx):
        self.log("val_loss", self.shared(batch)[0])
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.hparams.total)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sch, "interval": "step"}}
L.seed_everything(0)
trainer = L.Trainer(max_steps=1000, gradient_clip_val=1.0, accumulate_grad_batches=4)
trainer.fit(Lit(), datamodule=Data())
"""
LONE = LIGHTNING[: LIGHTNING.index("L.seed_everything")]
MANUAL = """\
import pytorch_lightning as pl
class GAN(pl.LightningModule):
    def __init__(self, z=8):
        super().__init__()
        self.z = z
        self.automatic_optimization = False
        self.g = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, 2))
        self.d = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    def training_step(self, batch, idx):
        (real,) = batch
        og, od = self.optimizers()
        noise = torch.randn(real.shape[0], self.z, device=self.device)
        fake = self.g(noise).detach()
        ld = F.softplus(-self.d(real)).mean() + F.softplus(self.d(fake)).mean()
        od.zero_grad()
        self.manual_backward(ld)
        od.step()
        lg = F.softplus(-self.d(self.g(noise))).mean()
        og.zero_grad()
        self.manual_backward(lg)
        og.step()
    def configure_optimizers(self):
        return [torch.optim.Adam(self.g.parameters(), lr=2e-4), torch.optim.Adam(self.d.parameters(), lr=2e-4)], []
pl.seed_everything(1)
ds = TensorDataset(torch.randn(1000, 2))
pl.Trainer(max_epochs=5).fit(GAN(), DataLoader(ds, batch_size=64, shuffle=True))
"""
ACCELERATE = """\
from accelerate import Accelerator
from accelerate.utils import set_seed
def main():
    set_seed(0)
    acc = Accelerator(gradient_accumulation_steps=4, mixed_precision="bf16")
    x = torch.randn(1000, 10)
    y = (x.sum(1) > 0).long()
    train = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=8, shuffle=True)
    val = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=32)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 20))
    model, opt, train, val, sched = acc.prepare(model, opt, train, val, sched)
    for epoch in range(3):
        model.train()
        for xb, yb in train:
            with acc.accumulate(model):
                loss = F.cross_entropy(model(xb), yb)
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
        model.eval()
        right = 0
        for xb, yb in val:
            with torch.no_grad():
                out = model(xb).argmax(-1)
            out, yb = acc.gather_for_metrics((out, yb))
            right += (out == yb).sum().item()
        acc.print(f"epoch {epoch} right {right}")
        acc.save_state(f"ck/{epoch}")
    if acc.is_main_process:
        torch.save(acc.unwrap_model(model).state_dict(), "model.pt")
if __name__ == "__main__":
    main()
"""
FABRIC = """\
from lightning.fabric import Fabric
def main():
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(1)
    x = torch.randn(1000, 10)
    loader = fabric.setup_dataloaders(DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=8, shuffle=True))
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt = fabric.setup(model, opt)
    accum = 4
    for epoch in range(2):
        for i, (xb, yb) in enumerate(loader):
            last = (i + 1) % accum == 0
            with fabric.no_backward_sync(model, enabled=not last):
                loss = F.cross_entropy(model(xb), yb)
                fabric.backward(loss / accum)
            if last:
                fabric.clip_gradients(model, opt, max_norm=1.0)
                opt.step()
                opt.zero_grad()
main()
"""
HUGGING_FACE = """\
from transformers import Trainer, TrainingArguments, AutoModelForSequenceClassification
from datasets import load_dataset
class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, labels, weight=torch.tensor([0.3, 0.7], device=labels.device))
        return (loss, outputs) if return_outputs else loss
model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
ds = load_dataset("imdb")
args = TrainingArguments("out", learning_rate=2e-5)
Weighted(model=model, args=args, train_dataset=ds["train"], eval_dataset=ds["test"]).train()
"""


def loud(code: str) -> set[tuple[str, str]]:
    """Ids of warnings and criticals, with the text of the line where they stand."""
    text = HEAD + code
    data = text.encode()
    result = check([Source(name="train.py", open=lambda: io.BytesIO(data), head=data, size=len(data))])
    lines = text.splitlines()
    return {(f.id, lines[(f.line or 1) - 1].strip()) for f in result.findings if f.severity in ("warning", "critical")}


@pytest.mark.parametrize("code", [LIGHTNING, LONE, MANUAL, ACCELERATE, FABRIC, HUGGING_FACE])
def test_healthy_programs_are_silent(code: str) -> None:
    assert loud(code) == set()


@pytest.mark.parametrize(
    ("code", "before", "after", "wanted", "line"),
    [
        (LIGHTNING, "AdamW(self.parameters()", "AdamW(self.net[0].parameters()", "optimizer-missing-parameters", ""),
        (LONE, "AdamW(self.parameters()", "AdamW(self.net[0].parameters()", "optimizer-missing-parameters", ""),
        (LIGHTNING, "return F.cross_entropy(logits,", "return F.cross_entropy(logits.softmax(-1),",
         "softmax-before-cross-entropy", "return F.cross_entropy(logits.softmax(-1),"),
        (LIGHTNING, "        return loss\n", "        return loss.detach()\n", "detached-graph",
         "return loss.detach()"),
        (MANUAL, "        od.zero_grad()\n", "", "zero-grad-missing", ""),
        (MANUAL, "Adam(self.g.", "Adam(self.d.", "optimizer-missing-parameters", ""),
        (ACCELERATE, "                opt.zero_grad()\n", "", "zero-grad-missing", ""),
        (ACCELERATE, "                opt.step()\n                sched.step()\n                opt.zero_grad()\n",
         "                opt.zero_grad()\n                opt.step()\n                sched.step()\n",
         "zero-grad-before-step", "opt.zero_grad()"),
        (ACCELERATE, "        model.train()\n", "", "eval-mode-in-training", ""),
        (FABRIC, "fabric.backward(loss / accum)", "fabric.backward(loss)", "grad-accum-normalisation", ""),
        (FABRIC, "                opt.zero_grad()\n", "", "zero-grad-missing", ""),
        (HUGGING_FACE, "F.cross_entropy(outputs.logits,", "F.cross_entropy(outputs.logits.softmax(-1),",
         "softmax-before-cross-entropy", "loss = F.cross_entropy(outputs.logits.softmax(-1),"),
    ],
)  # fmt: skip
def test_one_edit_is_found(code: str, before: str, after: str, wanted: str, line: str) -> None:
    assert before in code
    found = loud(code.replace(before, after))
    assert any(name == wanted and text.startswith(line) for name, text in found), found
