"""Break every function of the recorder in turn, in a process of its own, and see that the training does not notice.

Prints one line for each broken function whose training came out different or raised; nothing if all is well, and the
number of functions at the end.
"""

import hashlib
import importlib
import inspect
import os
import sys
import types
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

INSIDE = Path(sys.argv[1])
MODULES = sys.argv[3].split(",")
package = types.ModuleType("_trainwreck_inside")
package.__path__ = [str(INSIDE)]
sys.modules["_trainwreck_inside"] = package


def training() -> str:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    x, y = torch.randn(96, 6), torch.randint(3, (96,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for a, b in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True):
        loss = nn.functional.cross_entropy(model(a), b)
        if schedule.last_epoch == 4:  # an alarm; the scaler leaves the step out
            loss = loss * float("nan")
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    parts = [t.numpy().tobytes() for t in model.state_dict().values()]
    return hashlib.sha256(b"".join(parts)).hexdigest() + str(torch.rand(1).item())


def fork() -> int:
    """A copy that has ended: what copies do is tried elsewhere."""
    return 1 << 30


expected = training()
os.fork = fork
hooks = importlib.import_module("_trainwreck_inside.hooks")
recorder = hooks.start(sys.argv[2], {"quiet": True, "every_leaf": True})
if training() != expected:
    print("recorded training differs")


def fail(*arguments, **options):
    raise RuntimeError("injected")


index = type(recorder)._index
capture = next(p for p in recorder.probes if p.name == "capture")
if not capture._steps:
    print("no alarm was raised")
count = 0
for name in MODULES:
    module = importlib.import_module(f"_trainwreck_inside.{name}")
    owners = [module, *(c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__)]
    for owner in owners:
        for key, value in list(vars(owner).items()):
            mine = isinstance(value, types.FunctionType) and value.__module__ == module.__name__
            if not mine or key.startswith("__") or key in ("_contained", "_hook"):  # containment itself
                continue
            users = (
                [m for n, m in sys.modules.items() if n.startswith("_trainwreck_inside.")] if owner is module else []
            )
            places = [(m, k) for m in users for k, v in list(vars(m).items()) if v is value] or [(owner, key)]
            for place, label in places:
                setattr(place, label, fail)
            recorder.faults.off.clear()
            recorder.faults._counts.clear()
            recorder.optimizers.clear()
            recorder.alarms._told.clear()
            capture._steps.clear()
            index(recorder)
            count += 1
            try:
                if training() != expected:
                    print(f"{name}.{key}: different result")
                if key not in ("flush", "_tell"):  # the test itself calls them
                    recorder.flush()
            except Exception as problem:
                print(f"{name}.{key}: {type(problem).__name__}: {problem}")
            for place, label in places:
                setattr(place, label, value)
recorder.faults.off.clear()
print(count)
