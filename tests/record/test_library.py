"""The recorder as a library: ``watch``, ``log`` and the frameworks' callbacks record, and change nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainwreck.engine import diagnose

pytest.importorskip("torch", reason="torch is not installed")

PLAIN = """
import sys, torch, trainwreck
from torch import nn
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(400, 4), torch.randint(3, (400,))
def train(n):
    for i in range(n):
        out = model(x[i * 4 : i * 4 + 4])
        ce = nn.functional.cross_entropy(out, y[i * 4 : i * 4 + 4])
        loss = ce + 0.1 * out.square().mean()
        trainwreck.log({"reward": i}, loss_terms={"ce": ce}, advantages=out, codes=out.argmax(1), empty=out[:0])
        opt.zero_grad(); loss.backward(); opt.step()
"""
SHOW = """
for p in model.parameters(): print(p.sum().item())
"""


def python(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(text)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def names(folder: Path) -> set[str]:
    return {name for run in diagnose([folder]).runs for name in run.metrics}


def test_watch_records_a_block_and_changes_nothing(tmp_path: Path) -> None:
    plain = python(tmp_path, PLAIN + "train(40)\n" + SHOW)
    block = "with trainwreck.watch(model, opt, record_to='rec', quiet=True):\n    train(40)\n"
    assert python(tmp_path, PLAIN + block + SHOW) == plain
    found = names(tmp_path / "rec")
    assert {"loss", "grad_norm", "lr"} <= found
    assert any(n.endswith("reward") for n in found)
    assert any(n.endswith("codebook/perplexity") for n in found)
    assert any(n.endswith("term/ce") for n in found)


def test_two_recordings_after_each_other_are_two(tmp_path: Path) -> None:
    text = "".join(f"with trainwreck.watch(record_to='{n}', quiet=True):\n    train(30)\n" for n in "ab")
    python(tmp_path, PLAIN + text)
    for name in "ab":
        run = next(r for r in diagnose([tmp_path / name]).runs if "loss" in r.metrics)
        assert run.steps in (30, 31)  # the last event belongs to the step that was to come
    head = [(tmp_path / n / "rank0.jsonl").read_text().splitlines()[-1] for n in "ab"]
    assert all(json.loads(line)["event"] == "ended" for line in head)


def test_an_exception_that_leaves_the_block_is_kept(tmp_path: Path) -> None:
    text = """
try:
    with trainwreck.watch(record_to='rec', quiet=True):
        train(8)
        raise ValueError("cannot reshape what is not there")
except ValueError:
    pass
"""
    python(tmp_path, PLAIN + text)
    assert "cannot reshape what is not there" in (tmp_path / "rec/traceback-rank0.txt").read_text()


def test_log_without_a_recorder_does_nothing(tmp_path: Path) -> None:
    python(tmp_path, PLAIN + "train(2)\n")
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]


def test_what_log_cannot_take_does_not_reach_the_training(tmp_path: Path) -> None:
    text = """
with trainwreck.watch(record_to='rec', quiet=True):
    train(3)
    for bad in (object(), "words", {1: 2}, [[1], [2, 3]]):
        trainwreck.log({"bad": bad})
    train(3)
print("alive")
"""
    assert python(tmp_path, PLAIN + text) == "alive\n"


def test_the_trainer_callback_sees_a_nan_that_the_trainer_hides(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    text = """
import torch
from torch import nn
from transformers import Trainer, TrainingArguments
from trainwreck.callbacks.transformers import Recording

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    def forward(self, x, labels=None):
        logits = self.net(x)
        loss = nn.functional.cross_entropy(logits, labels)
        return {"loss": loss * torch.log(1 - x[:, 0].max() / 3), "logits": logits}

torch.manual_seed(0)
data = [{"x": torch.randn(4).clamp(-2, 2), "labels": i % 2} for i in range(200)]
data[100]["x"][0] = 5.0
options = TrainingArguments("out", num_train_epochs=1, logging_steps=2, report_to="none", disable_tqdm=True,
                            save_strategy="no", per_device_train_batch_size=4, use_cpu=True)
Trainer(Net(), options, train_dataset=data, callbacks=[Recording(record_to="rec", quiet=True)]).train()
"""
    python(tmp_path, text)
    result = diagnose([tmp_path / "rec"], code=[tmp_path / "train.py"])
    assert any("loss" in run.metrics for run in result.runs)
    events = [json.loads(line) for line in (tmp_path / "rec/rank0.jsonl").read_text().splitlines()]
    assert any(e.get("event") == "alarm-nonfinite-loss" for e in events)
    assert any("logging_nan_inf_filter" in e.get("text", "") for e in events)


def test_the_tracker_of_accelerate_records(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    text = """
import torch
from torch import nn
from accelerate import Accelerator
from trainwreck.callbacks.accelerate import Recording
accelerator = Accelerator(cpu=True, log_with=[Recording(record_to="rec", quiet=True)])
accelerator.init_trackers("any", config={"lr": 0.1})
model = nn.Linear(4, 2)
model, opt = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
for i in range(24):
    loss = model(torch.randn(8, 4)).square().mean()
    opt.zero_grad(); accelerator.backward(loss); opt.step()
    accelerator.log({"my_metric": i, "text": "x"}, step=i)
accelerator.end_training()
"""
    python(tmp_path, text)
    found = names(tmp_path / "rec")
    assert "loss" in found
    assert any(n.endswith("my_metric") for n in found)


def test_the_lightning_callback_records(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    text = """
import torch, lightning
from torch import nn
from trainwreck.callbacks.lightning import Recording
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(96, 4), torch.randint(2, (96,)))
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                            log_every_n_steps=4, enable_progress_bar=False, enable_model_summary=False,
                            callbacks=[Recording(record_to="rec", quiet=True)])
trainer.fit(Net(), torch.utils.data.DataLoader(data, batch_size=8))
"""
    python(tmp_path, text)
    found = names(tmp_path / "rec")
    assert "loss" in found
    assert any(n.endswith("train_loss") for n in found)
