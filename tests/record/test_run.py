"""The recorder changes nothing: results bit for bit, exit code, output, traceback; and its faults are contained."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import forked
import pytest

from trainwreck.collect import collect
from trainwreck.core.run import Run
from trainwreck.runs import witness

pytest.importorskip("torch", reason="torch is not installed")

START = """
import hashlib, sys, torch
from torch import nn
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
x, y = torch.randn(240, 6), torch.randint(3, (240,))
def digest(*models):
    h = hashlib.sha256()
    for m in models:
        for t in m.state_dict().values():
            h.update(t.numpy().tobytes())
    return h.hexdigest()
"""
LOOPS = {
    "plain": """
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for i in range(60):
    loss = nn.functional.cross_entropy(model(x[i * 4 : i * 4 + 4]), y[i * 4 : i * 4 + 4])
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
""",
    "accumulation": """
opt = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
for i in range(60):
    loss = nn.functional.cross_entropy(model(x[i * 4 : i * 4 + 4]), y[i * 4 : i * 4 + 4]) / 4
    loss.backward()
    if i % 4 == 3:
        opt.step(); opt.zero_grad()
    print(loss.item())
""",
    "autocast": """
opt = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=True)
for i in range(30):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x[i * 8 : i * 8 + 8]), y[i * 8 : i * 8 + 8])
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
""",
    "two optimizers": """
other = nn.Linear(3, 6)
a, b = torch.optim.Adam(model.parameters(), lr=1e-3), torch.optim.Adam(other.parameters(), lr=1e-3)
for i in range(40):
    fake = other(torch.randn(8, 3))
    a.zero_grad(); model(fake.detach()).square().mean().backward(); a.step()
    b.zero_grad(); (-model(fake)).mean().backward(); b.step()
print(digest(other))
""",
    "closure": """
opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
model.eval()
for i in range(5):
    def closure():
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss
    print(float(opt.step(closure)))
""",
    "compiled": """
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
step = torch.compile(model, backend="eager", fullgraph=True)
for i in range(20):
    loss = nn.functional.cross_entropy(step(x[i * 8 : i * 8 + 8]), y[i * 8 : i * 8 + 8])
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
""",
    "checkpointing": """
from torch.utils.checkpoint import checkpoint
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for i in range(30):
    h = checkpoint(model[:4], x[i * 8 : i * 8 + 8], use_reentrant=False)
    loss = nn.functional.cross_entropy(model[4](h), y[i * 8 : i * 8 + 8])
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
""",
    "recurrent": """
net = nn.LSTM(6, 12, num_layers=2, dropout=0.1, batch_first=True)
opt = torch.optim.RMSprop([*net.parameters(), *model[4].parameters()], lr=1e-3)
head = nn.Linear(12, 3)
opt.add_param_group({"params": head.parameters()})
state = None
for i in range(24):
    out, state = net(x[i * 8 : i * 8 + 8].view(2, 4, 6), state)
    state = tuple(s.detach() for s in state)
    loss = nn.functional.cross_entropy(head(out).flatten(0, 1), y[i * 8 : i * 8 + 8])
    opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.0); opt.step()
    print(loss.item())
print(digest(net, head))
""",
    "average and copies": """
import copy, io
shadow = copy.deepcopy(model).eval().requires_grad_(False)
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
saved = []
for i in range(42):
    loss = nn.functional.cross_entropy(model(x[i * 4 : i * 4 + 4]), y[i * 4 : i * 4 + 4])
    opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad():
        for a, b in zip(shadow.parameters(), model.parameters()):
            a.mul_(0.9).add_(b, alpha=0.1)
    other, file = copy.deepcopy(model), io.BytesIO()
    torch.save(model, file); torch.save(copy.deepcopy(opt), io.BytesIO())
    saved.append(len(file.getvalue()))
    print(loss.item(), len(saved), saved[-1])
print(digest(shadow, other))
""",
    "hand-written optimizer": """
class Sign(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad.sign(), alpha=-group["lr"])
opt = Sign(model.parameters(), 1e-3)
for i in range(30):
    loss = nn.functional.cross_entropy(model(x[i * 8 : i * 8 + 8]), y[i * 8 : i * 8 + 8])
    opt.zero_grad(set_to_none=False); loss.backward(); opt.step()
    print(loss.item())
for i in range(30):
    grads = torch.autograd.grad(nn.functional.cross_entropy(model(x[:16]), y[:16]), list(model.parameters()))
    with torch.no_grad():
        for p, g in zip(model.parameters(), grads):
            p -= 1e-2 * g
""",
    "loss scaling": """
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=5)
for i in range(30):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x[i * 8 : i * 8 + 8]), y[i * 8 : i * 8 + 8])
    if i in (3, 4):
        loss = loss * torch.tensor(3e38)
    opt.zero_grad(); scaler.scale(loss).backward(); scaler.step(opt); scaler.update()
    print(loss.item(), scaler.get_scale())
""",
    "its own locals": """
def train(lr=1e-2, steps=30):
    settings = locals()
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    for i in range(steps):
        loss = nn.functional.cross_entropy(model(x[i * 8 : i * 8 + 8]), y[i * 8 : i * 8 + 8])
        opt.zero_grad(); loss.backward(); opt.step()
        print(sorted(settings), loss.item())
    return settings
print(train())
""",
    "custom function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return 2 * v
    @staticmethod
    def backward(ctx, g):
        return 2 * g + 0 * ctx.saved_tensors[0]
opt = torch.optim.Adagrad(model.parameters(), lr=1e-2)
for i in range(30):
    loss = nn.functional.cross_entropy(Double.apply(model(x[i * 8 : i * 8 + 8])), y[i * 8 : i * 8 + 8])
    opt.zero_grad(); loss.backward(retain_graph=True); opt.step()
    print(loss.item())
""",
    "workers": """
from torch.utils.data import DataLoader, TensorDataset
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
for a, b in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, num_workers=2):
    loss = nn.functional.cross_entropy(model(a), b)
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
""",
}
IN_A_PROCESS_OF_THEIR_OWN = ("plain", "closure", "compiled", "its own locals", "workers")
"""Whole processes for what depends on one; forks, which load no torch, for the other loops."""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*command: str, cwd: Path, recorded: bool) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *(("-m", "trainwreck", "run", "--record-to", "rec") if recorded else ()), *command]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False)


def events(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "rec/rank0.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if "event" in row]


def recorded_run(folder: Path) -> Run:
    """The recording as the reader sees it."""
    found = collect([folder / "rec"])
    assert not found.unreadable
    return next(run for run in witness(found.sources).runs if run.format == "trainwreck-recording")


@pytest.mark.parametrize("loop", LOOPS)
def test_results_are_bit_identical(loop: str, tmp_path: Path) -> None:
    text = START + LOOPS[loop] + "print(digest(model))\n"
    if loop in IN_A_PROCESS_OF_THEIR_OWN:
        (tmp_path / "train.py").write_text(text)
        plain = run("train.py", cwd=tmp_path, recorded=False)
        recorded = run("train.py", cwd=tmp_path, recorded=True)
        assert plain.returncode == 0, plain.stderr
        assert recorded.stdout == plain.stdout
        assert recorded.returncode == 0
    else:
        assert forked.recorded(text, tmp_path) == forked.plain(text, tmp_path)
    series = recorded_run(tmp_path).series
    assert len(series["loss"]) >= 5
    assert len(series["grad_norm"]) >= len(series["loss"])
    assert not [e for e in events(tmp_path) if e["event"] == "recorder-fault"]


def test_the_program_sees_nothing_of_us(tmp_path: Path) -> None:
    (tmp_path / "look.py").write_text(
        "import os, sys\nprint(__name__, __file__, sys.argv, sys.path, os.environ.get('PYTHONPATH'))\n"
        "print(sorted(k for k in os.environ if 'TRAINWRECK' in k), sys.stdin.isatty())\nsys.exit(7)\n"
    )
    plain = run("look.py", "--lr", "3e-4", cwd=tmp_path, recorded=False)
    recorded = run("look.py", "--lr", "3e-4", cwd=tmp_path, recorded=True)
    assert recorded.stdout == plain.stdout
    assert recorded.returncode == plain.returncode == 7


def test_the_traceback_is_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(START + "model(x).sum(dim=1).backward()\n")
    plain = run("train.py", cwd=tmp_path, recorded=False)
    recorded = run("train.py", cwd=tmp_path, recorded=True)
    assert recorded.returncode == plain.returncode == 1
    assert plain.stderr.strip() in recorded.stderr
    assert "recorder.py" not in recorded.stderr


def test_a_traceback_that_the_program_prints_itself_is_its_own(tmp_path: Path) -> None:
    broken = """
import traceback
from torch.utils.data import DataLoader, Dataset
class Broken(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): raise KeyError(i)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for attempt in (lambda: model(x).sum(dim=1).backward(), lambda: next(iter(DataLoader(Broken()))),
                lambda: model.load_state_dict({"0.weight": x}), lambda: opt.step(lambda: 1 / 0)):
    try:
        attempt()
    except Exception:
        print(traceback.format_exc())
"""
    (tmp_path / "train.py").write_text(START + broken)
    plain = run("train.py", cwd=tmp_path, recorded=False)
    recorded = run("train.py", cwd=tmp_path, recorded=True)
    assert recorded.stdout == plain.stdout
    assert plain.stdout.count("Traceback") >= 4


def test_interrupting_once_is_enough(tmp_path: Path) -> None:
    endless = LOOPS["plain"].replace("for i in range(60):", "for i in [j % 60 for j in range(10**7)]:")
    (tmp_path / "train.py").write_text(START + endless.replace("print(loss.item())", "print(i, flush=True)"))
    words = [sys.executable, "-m", "trainwreck", "run", "--record-to", "rec", "train.py"]
    # A shell's background jobs ignore Ctrl-C and hand that on; what is caught here is in order again in the child.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    group = subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, start_new_session=True
    )
    signal.signal(signal.SIGINT, before)
    assert group.stdout is not None
    group.stdout.readline()
    os.killpg(group.pid, signal.SIGINT)  # as a terminal does: parent and child
    _, told = group.communicate(timeout=120)
    assert group.returncode in (128 + signal.SIGINT, 1)
    assert told.count(b"Traceback") == 1
    assert b"_trainwreck" not in told


def test_json_stands_alone_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(START + LOOPS["plain"])
    words = [sys.executable, "-m", "trainwreck", "run", "--format", "json", "--record-to", "rec", "train.py"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False
    )
    answer = json.loads(done.stdout)
    assert any(r["format"] == "trainwreck-recording" for r in answer["runs"])


def test_a_fault_of_ours_never_stops_the_training(tmp_path: Path) -> None:
    broken = "def fail(*a, **k):\n    raise OSError('injected')\ntorch._foreach_norm = fail\n"
    (tmp_path / "train.py").write_text(START + broken + LOOPS["plain"].replace("lr=1e-2)", "lr=1e-2, foreach=False)"))
    done = run("train.py", cwd=tmp_path, recorded=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 60
    assert done.stderr.count("no longer recording gradient norms") == 1


def test_a_folder_that_cannot_be_written_never_stops_the_training(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(START + LOOPS["plain"])
    (tmp_path / "rec").write_text("a file stands where the folder should be")
    done = run("train.py", cwd=tmp_path, recorded=True)
    assert done.stdout.count("\n") == 60
    assert "Traceback" not in done.stderr


def test_a_recording_that_was_killed_still_opens(tmp_path: Path) -> None:
    endless = LOOPS["plain"].replace("for i in range(60):", "for i in [j % 60 for j in range(10**7)]:")
    (tmp_path / "train.py").write_text(START + endless.replace("print(loss.item())", ""))
    words = [sys.executable, "-m", "trainwreck", "run", "--record-to", "rec", "train.py"]
    parent = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
    file = tmp_path / "rec/rank0.twr"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not file.exists() or file.stat().st_size < 40_000):
        time.sleep(0.1)
    child = subprocess.run(["pgrep", "-P", str(parent.pid)], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(child[0]), signal.SIGKILL)
    _, told = parent.communicate(timeout=60)
    assert parent.returncode == 128 + signal.SIGKILL
    assert b"Traceback" not in told
    assert len(recorded_run(tmp_path).series["loss"]) > 100


FAULTS = {
    "live-not-in-optimizer": """
opt = torch.optim.SGD(model[:3].parameters(), lr=1e-2)
for i in range(12):
    loss = nn.functional.cross_entropy(model(x[:32]), y[:32])
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "live-no-gradient": """
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
for i in range(12):
    with torch.no_grad():
        h = model[:4](x[:32])
    loss = nn.functional.cross_entropy(model[4](h), y[:32])
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "live-eval-mode-in-training": """
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
model.eval()
for i in range(12):
    loss = nn.functional.cross_entropy(model(x[:32]), y[:32])
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "live-gradients-never-zeroed": """
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
for i in range(12):
    loss = nn.functional.cross_entropy(model(x[:32]), y[:32])
    loss.backward(); opt.step()
""",
    "live-step-changes-nothing": """
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
for i in range(12):
    loss = nn.functional.cross_entropy(model(x[:32]), y[:32])
    loss.backward(); opt.zero_grad(); opt.step()
""",
}


@pytest.mark.parametrize("kind", FAULTS)
def test_wiring_faults_are_seen_by_step_five(kind: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(START + FAULTS[kind])
    done = run("train.py", cwd=tmp_path, recorded=True)
    found = [e for e in events(tmp_path) if e["event"] == kind]
    assert len(found) == 1, done.stderr
    assert int(str(found[0]["step"])) <= 5


def test_a_sound_loop_shows_no_wiring_fault(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(START + LOOPS["plain"])
    run("train.py", cwd=tmp_path, recorded=True)
    assert [e["event"] for e in events(tmp_path) if e["event"] not in ("tensor", "loader", "optimizer")] == ["ended"]
