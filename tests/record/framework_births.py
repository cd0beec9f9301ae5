"""Births of non-finite values under frameworks' own loops, with their real components; marks as in ``births.py``.

``RANKS`` is for two processes.
"""

from __future__ import annotations

import textwrap

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randint(3, (64,))
"""
LIGHTNING = """\
import logging, warnings
import lightning.pytorch as pl
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
QUIET = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
def fit(module, data, **more):
    pl.Trainer(max_epochs=1, accelerator="cpu", **QUIET, **more).fit(module, DataLoader(data, batch_size=8))
"""
TRAINER = """\
from transformers import Trainer, TrainingArguments
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return {"x": x[i], "labels": y[i]}
def arguments(**more):
    return TrainingArguments("out", max_steps=6, per_device_train_batch_size=8, report_to=[], save_strategy="no",
                             use_cpu=True, disable_tqdm=True, logging_steps=2, **more)
"""
RNN = """\
rnn, head = nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)
opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.05)
stream = torch.randn(20, 4, 5, 6)
"""

PROGRAMS: dict[str, str] = {}


def _add(name: str, *parts: str) -> None:
    PROGRAMS[name] = HEAD + "".join(textwrap.dedent(part) for part in parts)


_add(
    "lightning, log of zero in training_step",
    LIGHTNING,
    """\
    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(6, 3)
        def training_step(self, batch, index):
            a, b = batch
            p = self.net(a * (1 if index < 3 else 4000)).softmax(-1)
            picked = p.gather(1, b[:, None])
            return -picked.log().mean()  # born: log log
        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3)
    fit(Module(), TensorDataset(x, y))
    """,
)
_add(
    "lightning, manual optimization, division by an empty mask",
    LIGHTNING,
    """\
    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.net = nn.Linear(6, 3)
        def masked(self, losses, mask):
            return (losses * mask).sum() / mask.sum()  # born: division div
        def training_step(self, batch, index):
            a, b = batch
            opt = self.optimizers()
            mask = (b >= (0 if index < 4 else 3)).float()
            loss = self.masked(F.cross_entropy(self.net(a), b, reduction="none"), mask)
            opt.zero_grad()
            self.manual_backward(loss)
            opt.step()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    fit(Module(), TensorDataset(x, y))
    """,
)
_add(
    "lightning, NaN in the data",
    "x[42, 3] = float('nan')\n",
    LIGHTNING,
    """\
    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(6, 3)
        def training_step(self, batch, index):
            a, b = batch
            return F.cross_entropy(self.net(a), b)  # born: data *
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    fit(Module(), TensorDataset(x, y), accumulate_grad_batches=2)
    """,
)
_add(
    "HF Trainer, log in the model",
    TRAINER,
    """\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(6, 3)
            self.calls = 0
        def forward(self, x, labels):
            self.calls += 1
            p = self.lin(x * (1 if self.calls < 4 else 4000)).softmax(-1)
            loss = -torch.log(p.gather(1, labels[:, None])).mean()  # born: log log
            return {"loss": loss, "logits": p}
    Trainer(Net(), arguments(), train_dataset=Rows()).train()
    """,
)
_add(
    "HF Trainer, slope of a root in compute_loss, with accumulation",
    TRAINER,
    """\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(6, 3)
        def forward(self, x, labels=None):
            return {"logits": self.lin(x)}
    class Distances(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            out = model(inputs["x"])["logits"]
            apart = out if self.state.global_step < 2 else out * 0
            loss = apart.square().sum(-1).sqrt().mean()  # born: sqrt-gradient sqrt
            return (loss, {"logits": out}) if return_outputs else loss
    Distances(Net(), arguments(gradient_accumulation_steps=2, max_grad_norm=0.0), train_dataset=Rows()).train()
    """,
)
_add(
    "Accelerate, exp in a function, with accumulation",
    """\
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, opt, loader = accelerator.prepare(model, opt, DataLoader(TensorDataset(x, y), batch_size=8))
    def nll(out, target):
        mu, logvar = out.chunk(2, -1)
        inv = torch.exp(-logvar)  # born: exp exp
        return (inv * (mu.squeeze(-1) - target) ** 2 + logvar).mean()
    for i, (a, b) in enumerate(loader):
        with accelerator.accumulate(model):
            loss = nll(model(a) * (1 if i < 5 else 1e4), b.float())
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
    """,
)
_add(
    "hidden state carried across batches, broken in this step",
    RNN,
    """\
    h = torch.zeros(1, 4, 8)
    for i in range(12):
        out, h = rnn(stream[i], h.detach())
        scaled = out * (1 if i < 8 else 0)
        weights = scaled.sum(-1, keepdim=True)
        normal = out / weights  # born: division div
        loss = head(normal if i >= 8 else out).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
)
_add(
    "hidden state carried across batches, broken between two steps",
    RNN,
    """\
    h = torch.zeros(1, 4, 8)
    for i in range(12):
        out, h = rnn(stream[i], h.detach())  # born: state h
        loss = head(out).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i == 7:
            h = h / h.sum().sub(h.sum())
    """,
)

RANKS = """\
import os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=f"file://{os.environ['STORE']}", rank=rank, world_size=2)
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Linear(6, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(8):
    batch = torch.randn(16, 6)
    broken = i == 5 and rank == 1
    p = model(batch * (4000 if broken else 1)).softmax(-1)
    loss = -p[:, 0].log().mean()  # born: log log
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.destroy_process_group()
"""
