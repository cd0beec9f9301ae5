"""Training resumes without the state of its scheduler.

What: model (and optimizer) are restored from a checkpoint, the scheduler of the same loop is built anew and not
restored.
Why it matters: the learning rate starts again from its beginning: a second warm-up, or no decay any more.
When it is fine: where the scheduler is fast-forwarded, or the run is fine-tuned afresh on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.order import kind_of
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

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
"""


def find(project: Project) -> Iterator[Evidence]:
    """Certain where the scheduler's state is saved by the program and never loaded by it."""
    place = _unrestored(project)
    saved = [c for c in project.calls("state_dict") if _of_scheduler(project, c)]
    if place is not None and any(c.scope.module is place.scope.module for c in saved):
        text = "the scheduler's state is saved but not restored when training resumes here"
        yield sighting(__name__, place, text)


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
    last = loads[-1]
    after = [c for c in lambdas if c.scope is last.scope and c.line > loads[0].line]
    return after[-1] if after else last


def _of_scheduler(project: Project, call: Call) -> bool:
    return "sched" in written(call.receiver).lower() or kind_of(project, call) == "scheduler"
