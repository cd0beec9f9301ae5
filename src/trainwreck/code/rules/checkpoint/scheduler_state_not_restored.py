"""Training resumes without the state of its scheduler.

What: model (and optimizer) are restored from a checkpoint, the scheduler of the same loop is built anew and not
restored.
Why it matters: the learning rate starts again from its beginning: a second warm-up, or no decay any more.
When it is fine: where the scheduler is fast-forwarded, or the run is fine-tuned afresh on purpose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.order import kind_of
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.checkpoints import scheduler_forgotten
from trainwreck.code.rehearsal.questions.stored import planned_again
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.code.topics import RESTORING
from trainwreck.core.evidence import Evidence

WORDS = RESTORING
BAD = """
import torch
def main(build, path, fit):
    model = build()
    opt = torch.optim.Adam(model.parameters())
    sched = torch.optim.lr_scheduler.StepLR(opt, 3)
    torch.save({"m": model.state_dict(), "o": opt.state_dict(), "s": sched.state_dict()}, path)
    state = torch.load(path)
    model.load_state_dict(state["m"])
    opt.load_state_dict(state["o"])
    sched = torch.optim.lr_scheduler.StepLR(opt, 3)  # expect
    fit(model, opt, sched)
"""
GOOD = """
import torch
def main(build, path, fit):
    model = build()
    opt = torch.optim.Adam(model.parameters())
    sched = torch.optim.lr_scheduler.StepLR(opt, 3)
    torch.save({"m": model.state_dict(), "o": opt.state_dict(), "s": sched.state_dict()}, path)
    state = torch.load(path)
    model.load_state_dict(state["m"])
    opt.load_state_dict(state["o"])
    sched.load_state_dict(state["s"])
    fit(model, opt, sched)
class Tagger:
    def __init__(self, model, path):
        self.model = model
        self.model.load_state_dict(torch.load(path))
    def save(self, path, optimizer, scheduler):
        torch.save(optimizer.state_dict(), path + "/optimizer.pt")
        torch.save(scheduler.state_dict(), path + "/scheduler.pt")
class Run:
    def load_state_dict(self, state):
        def put(name, part):
            part.load_state_dict(state[name])
        put("optimizer", self.optimizer)
        put("scheduler", self.scheduler)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), scheduler_forgotten, planned_again)


def _seen(project: Project) -> Iterator[Evidence]:
    """Certain where the scheduler's state is saved by the program and never loaded by it."""
    place = _unrestored(project)
    saved = [c for c in project.calls("state_dict") if _of_scheduler(project, c)]
    resumes = place is not None and _resumes(project, place)
    if place is not None and resumes and any(c.scope.module is place.scope.module for c in saved):
        text = "the scheduler's state is saved but not restored when training resumes here"
        yield sighting(__name__, place, text)


def _resumes(project: Project, place: Call) -> bool:
    """True where training goes on: the optimizer is restored in the same file, and nothing is restored by a name that
    may stand for the scheduler too."""
    loads = [c for c in project.calls("load_state_dict") if c.receiver is not None]
    for call in loads:
        receiver = call.receiver
        if isinstance(receiver, ast.Name):
            scope = call.scope
            if receiver.id in scope.params and not NAMED.search(receiver.id):
                return False
            if any(b.kind == "loop" for b in project.lookup(receiver.id, scope)):
                return False
    here = [c for c in loads if c.scope.module is place.scope.module]
    return any("opt" in written(c.receiver).lower() or kind_of(project, c) == "optimizer" for c in here)


NAMED = pattern(r"model|net|opt|module|agent|policy|encoder|decoder|scaler|ema", re.IGNORECASE)
"""Names of parameters that tell what is restored."""


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    place = _unrestored(project)
    if place is not None:
        yield guess(__name__, place, "training resumes here without the scheduler's state")


def _unrestored(project: Project) -> Call | None:
    loads = [c for c in project.calls("load_state_dict") if c.receiver is not None]
    if not loads or any(_of_scheduler(project, c) for c in loads):
        return None
    schedulers = [c for name, calls in project.calls_by_name.items() if name.endswith("LR") for c in calls]
    lambdas = [c for c in schedulers if "Plateau" not in c.name]
    if not lambdas and not any(_of_scheduler(project, c) for c in project.calls("state_dict")):
        return None
    optimizers = [c for c in loads if "opt" in written(c.receiver).lower() or kind_of(project, c) == "optimizer"]
    last = (optimizers or loads)[-1]
    after = [c for c in lambdas if c.scope is last.scope and c.line > loads[0].line]
    return after[-1] if after else last


def _of_scheduler(project: Project, call: Call) -> bool:
    return "sched" in written(call.receiver).lower() or kind_of(project, call) == "scheduler"
