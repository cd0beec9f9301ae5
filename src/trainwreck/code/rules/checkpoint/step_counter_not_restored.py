"""A resumed run counts from zero again.

What: the checkpoint holds the epoch or step, and the program loads model and optimizer from it, but never reads the
counter back.
Why it matters: the run trains all epochs once more, the schedule and the names of checkpoints start over.
When it is fine: where the loaded weights start a new run on purpose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import source, trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.resuming import counter_forgotten
from trainwreck.code.rehearsal.questions.stored import counter_dropped, counter_unread
from trainwreck.code.rule import sighting
from trainwreck.code.topics import RESTORING
from trainwreck.core.evidence import Evidence

WORDS = RESTORING
BAD = (
    """
import torch
def main(model, opt, resume):
    if resume:
        ckpt = torch.load("last.pt")
        model.load_state_dict(ckpt["model"])
        opt.load_state_dict(ckpt["opt"])  # expect
    for epoch in range(10):
        model(1).backward()
        opt.step()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, "last.pt")
""",
    """
import os, torch
if os.path.exists("ck.pt"):
    state = torch.load("ck.pt", map_location="cpu")
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])  # expect
step = 0
while step < 1000:
    net(1).backward()
    optimizer.step()
    step += 1
    torch.save(dict(net=net.state_dict(), optimizer=optimizer.state_dict(), step=step), "ck.pt")
""",
    """
import torch
class Trainer:
    def save(self, epoch):
        state = {"weights": self.net.state_dict(), "optim": self.optim.state_dict(), "epoch": epoch}
        torch.save(state, self.path)
    def resume(self):
        saved = torch.load(self.path)
        self.net.load_state_dict(saved["weights"])
        self.optim.load_state_dict(saved["optim"])  # expect
    def fit(self):
        self.resume()
        for epoch in range(self.epochs):
            self.net(1).backward()
            self.save(epoch)
""",
)
GOOD = (
    """
import torch
def main(model, opt, resume):
    start = 0
    if resume:
        ckpt = torch.load("last.pt")
        model.load_state_dict(ckpt["model"])
        opt.load_state_dict(ckpt["opt"])
        start = ckpt["epoch"] + 1
    for epoch in range(start, 10):
        model(1).backward()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, "last.pt")
""",
    """
import torch
def fine_tune(model, opt):
    ckpt = torch.load("base.pt")
    model.load_state_dict(ckpt["model"])
    for epoch in range(10):
        model(1).backward()
        torch.save({"model": model.state_dict(), "epoch": epoch}, "tuned.pt")
""",
    """
import torch
def load(model, opt):
    ckpt = torch.load("last.pt")
    model.load_state_dict(ckpt["model"])
    opt.load_state_dict(ckpt["opt"])
    return ckpt
def main(model, opt):
    state = load(model, opt)
    for epoch in range(state.get("epoch", 0), 3):
        model(1).backward()
        torch.save({"model": 1, "opt": 2, "epoch": epoch}, "last.pt")
""",
)
COUNTERS = pattern(r"^(epochs?|steps?|iters?|iterations?|global_step|start_epoch|n_iter|iter_num|it)$")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), counter_forgotten, counter_dropped, counter_unread)


def _seen(project: Project) -> Iterator[Evidence]:
    if not trains(project) or not re.search(r"torch\.load|load\(", source(project)):
        return
    saved = _saved(project)
    if saved is None:
        return
    key, save = saved
    if re.search(
        rf"""(\[|get\(|pop\()['"]{key}['"]|\*\*\s*(ckpt|checkpoint|state)|\.{key}\b\s*[^=(]""", source(project)
    ):
        return
    for call in project.calls("load_state_dict"):
        given = call.node.args[0] if call.node.args else None
        optimizer = call.receiver is not None and "opt" in written(call.receiver).lower()
        if optimizer and isinstance(given, ast.Subscript) and isinstance(given.value, ast.Name):
            loads = [b for b in project.lookup(given.value.id, call.scope) if b.value is not None]
            if loads and all("load(" in written(b.value) for b in loads):
                text = f"the checkpoint holds {key!r} as well, and nothing reads it back: counting starts at zero"
                yield sighting(__name__, call, text, proof=[save])
                return


def _saved(project: Project) -> tuple[str, Call] | None:
    """The key of the counter in what ``torch.save`` writes, beside an optimizer state."""
    for call in project.calls("save"):
        value = call.argument("obj", 0)
        if project.called(call) != "torch.save" or value is None:
            continue
        if isinstance(value, ast.Name):
            found = [
                b.value for b in project.lookup(value.id, call.scope) if b.kind == "assign" and b.value is not None
            ]
            value = found[0] if len(found) == 1 else value
        keys: list[str] = []
        if isinstance(value, ast.Dict):
            keys = [k.value for k in value.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        elif isinstance(value, ast.Call) and written(value.func) == "dict":
            keys = [k.arg for k in value.keywords if k.arg]
        counter = next((k for k in keys if COUNTERS.match(k)), None)
        if counter is not None and any("opt" in k for k in keys):
            return counter, call
    return None
