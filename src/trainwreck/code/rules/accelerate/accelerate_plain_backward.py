"""Backward is called on the loss, not through the accelerator.

What: ``loss.backward()`` in a program whose model was given to ``accelerator.prepare``.
Why it matters: the accelerator scales the loss for fp16 and divides it for accumulation: both are skipped, and under
DeepSpeed nothing is reduced.
When it is fine: for a gradient that is not trained with (a penalty, an attribution).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import made_names
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator(mixed_precision="fp16")
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()  # expect
        opt.step()
        opt.zero_grad()
""",
    """
import accelerate
class Runner:
    def __init__(self, model, opt):
        self.acc = accelerate.Accelerator()
        self.model, self.opt = self.acc.prepare(model, opt)
    def step(self, batch):
        (self.model(batch).mean()).backward()  # expect
        self.opt.step()
""",
)
GOOD = """
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator()
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        opt.step()
def plain(net, opt, loader):
    for batch in loader:
        net(batch).sum().backward()
        opt.step()
"""


def accelerators(project: Project) -> list[Call]:
    """Calls that make an Accelerator of the accelerate library."""
    return [c for c in project.calls("Accelerator") if project.from_package(c, "accelerate")]


def prepares(project: Project) -> list[Call]:
    """Calls of ``prepare`` of an accelerator."""
    if "accelerator prepares" not in project.memo:
        project.memo["accelerator prepares"] = [
            c
            for c in project.calls("prepare")
            if c.receiver is not None and "Accelerator" in made_names(project, c.receiver, c.scope)
        ]
    found: list[Call] = project.memo["accelerator prepares"]
    return found


def find(project: Project) -> Iterator[Evidence]:
    if not accelerators(project):
        return
    scopes = {_home(c): c for c in prepares(project)}
    for call in project.calls("backward"):
        if call.receiver is None or _home(call) not in scopes:
            continue
        names = made_names(project, call.receiver, call.scope)
        through = "Accelerator" in names or "accel" in written(call.receiver).lower()
        if not through and not any(k.arg == "inputs" for k in call.node.keywords):
            text = "backward is called on the loss: the accelerator neither scales nor divides it"
            fix = Fix(f"accelerator.backward({written(call.receiver)})")
            yield sighting(__name__, call, text, proof=[scopes[_home(call)]], fix=fix)


def _home(call: Call) -> object:
    """The class of a method, else the function itself."""
    return call.scope.owner or call.scope
