"""Training resumes without the moments of its optimizer.

What: the optimizer's state is saved, the model is restored, the optimizer is not.
Why it matters: momentum and second moments start from zero: a jump of the loss at the seam.
When it is fine: for evaluation, fine-tuning, or plain SGD without momentum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.order import kind_of
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def save(path, model, opt, step):
    torch.save({"m": model.state_dict(), "o": opt.state_dict(), "step": step}, path)
def restore(path, model, opt):
    state = torch.load(path)
    model.load_state_dict(state["m"])  # expect
    return state["step"]
""",
    """
import torch
class Loop:
    def __init__(self, net):
        self.net, self.start = net, 0
        self.opt = torch.optim.Adam(net.parameters())
    def save(self, e):
        torch.save({"w": self.net.state_dict(), "o": self.opt.state_dict(), "e": e}, "x.pt")
    def restore(self):
        blob = torch.load("x.pt")
        self.net.load_state_dict(blob["w"])  # expect
        self.start = blob["e"] + 1
""",
)
GOOD = """
import torch
def save(path, model, opt, step):
    torch.save({"m": model.state_dict(), "o": opt.state_dict(), "step": step}, path)
def restore(path, model, opt):
    state = torch.load(path)
    model.load_state_dict(state["m"])
    opt.load_state_dict(state["o"])
    return state["step"]
"""


COUNTS = re.compile(r"step|epoch|self\.(start|begin|it|iteration|done)\w* = ")
"""A function that goes on where training stopped takes its counter too."""


def find(project: Project) -> Iterator[Evidence]:
    saved = [c for c in project.calls("state_dict") if _of_optimizer(project, c)]
    loads = list(project.calls("load_state_dict"))
    if not saved or not loads or any(_of_optimizer(project, c) for c in loads):
        return
    resuming = [c for c in loads if COUNTS.search(written(c.scope.node))]
    for call in resuming[-1:]:
        takes = any("opt" in p.lower() for p in call.scope.params)
        continues = any(w in call.scope.name.lower() for w in ("resume", "restore", "load_check"))
        if takes or continues:
            text = "the model is restored here, the saved optimizer state is not"
            yield sighting(__name__, call, text, proof=saved[:1])


def _of_optimizer(project: Project, call: Call) -> bool:
    text = written(call.receiver).lower()
    return "sched" not in text and ("opt" in text or kind_of(project, call) == "optimizer")
