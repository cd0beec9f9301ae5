"""The loss is cut off from the graph before ``backward()``.

What: the loss goes through ``.item()``, ``.detach()``, ``.data``, ``torch.tensor(...)`` or numpy and is wrapped
again.
Why it matters: ``backward()`` fails, or with ``requires_grad=True`` set by hand runs and changes nothing.
When it is fine: for values that are only logged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import optimizers
from trainwreck.code.flow import Step, back
from trainwreck.code.order import under_no_grad
from trainwreck.code.params import KEEPERS, builds, held, learners, parts, speaks_of_freezing
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.acting import never_asked
from trainwreck.code.rehearsal.questions.actors import cut_off, judges_another
from trainwreck.code.rehearsal.questions.branches import looks_only
from trainwreck.code.rehearsal.questions.cutoff import used_as_numbers
from trainwreck.code.rehearsal.questions.cuts import detached
from trainwreck.code.rehearsal.questions.equations import derivative_cut_off, derivative_of_a_number
from trainwreck.code.rehearsal.questions.partly import latent_cut_off
from trainwreck.code.rehearsal.questions.summands import without_gradient
from trainwreck.code.rehearsal.questions.untaught import weight_cut_off
from trainwreck.code.rule import guess, sighting
from trainwreck.code.spine import RESHAPES
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"does not require grad and does not have a grad_fn", r"no attribute 'backward'")
ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
BAD = (
    """
import torch
def train(model, loader, opt, criterion):
    for x, y in loader:
        value = criterion(model(x), y)
        loss = torch.tensor(value.item(), requires_grad=True)  # expect
        loss.backward()
        opt.step()
""",
    """
def train(model, loader, opt, criterion):
    for x, y in loader:
        out = model(x).detach()  # expect
        loss = criterion(out, y)
        loss.backward()  # fails
        opt.step()
""",
    """
import torch
from torch import nn
def train(loader, ce):
    encoder, head = nn.Linear(4, 8), nn.Linear(8, 2)
    opt = torch.optim.Adam(list(encoder.parameters()) + list(head.parameters()))
    for x, y in loader:
        h = torch.relu(encoder(x)).detach()  # expect
        loss = ce(head(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.out = nn.Linear(4, 8), nn.Linear(8, 2)
    def forward(self, x):
        z = torch.tensor(self.enc(x).tolist())  # expect
        return self.out(z)
def train(loader, ce):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        ce(net(x), y).backward()
        opt.step()
""",
)
GOOD = """
import torch
def train(model, teacher, loader, opt, criterion):
    for x, y in loader:
        target = teacher(x).detach()
        loss = criterion(model(x), target) + criterion(model(x), torch.tensor(0.5))
        loss.backward()
        opt.step()
        log = loss.item()
"""
CUTS = ("detach", "item", "numpy", "tolist", "float", "detach_")
WRAPS = ("tensor", "as_tensor", "from_numpy", "Variable", "FloatTensor", "Tensor")


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        first = answers(__name__, project, detached)
        asked = (
            looks_only,
            without_gradient,
            derivative_cut_off,
            derivative_of_a_number,
            used_as_numbers,
            latent_cut_off,
            cut_off,
            judges_another,
            never_asked,
            weight_cut_off,
        )
        yield from further(__name__, project, first, *asked)


def _written(project: Project) -> Iterator[Evidence]:
    found = list(_the_loss(project))
    yield from found or _a_part(project)


def _a_part(project: Project) -> Iterator[Evidence]:
    """A part that an optimizer is to train, whose every output is cut off at once."""
    if speaks_of_freezing(project):
        return
    for owner in learners(project):
        for name in parts(project, owner) if project.is_a(owner, "Module") else ():
            uses = [
                Call(node, method)
                for method in owner.children
                if method.kind == "function"
                for node in project.within(method, ast.Call)
                if isinstance(node, ast.Call) and written(node.func) == f"self.{name}"
            ]
            yield from _all_cut(project, f"self.{name}", uses)
    for built in optimizers(project):
        for item in held(project, built)[0]:
            name = written(item.node)
            if item.whole and builds(project, item.node, item.scope):
                calls = [
                    Call(node, scope)
                    for walked in project.walked.values()
                    for node, scope in walked.calls
                    if written(node.func) == name
                ]
                yield from _all_cut(project, name, calls)


def _all_cut(project: Project, name: str, uses: list[Call]) -> Iterator[Evidence]:
    if KEEPERS.search(name.lower()) or not uses:
        return
    places = [_cut_at_once(project, c) for c in uses]
    learned = [c for c in uses if under_no_grad(project, c.node, c.scope) is None]
    if learned and all(p is not None for p in places):
        text = f"{name} is among the trained parameters, and its output is cut off from the graph here"
        yield sighting(__name__, learned[0], text)


def _cut_at_once(project: Project, call: Call) -> ast.AST | None:
    """``f(x).detach()``, ``f(x).data``, ``torch.tensor(f(x).tolist())`` around a call, None where it goes on whole."""
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, ast.Attribute) and above.attr in ("detach", "data", "numpy", "tolist", "item"):
            return above
        keeps = isinstance(above, ast.Attribute) and above.attr in (*RESHAPES, "cpu", "relu", "tanh", "sigmoid")
        functional = isinstance(above, ast.Call) and last_name(above.func) in (
            "relu",
            "tanh",
            "gelu",
            "sigmoid",
            "normalize",
        )
        if not keeps and not functional and not (isinstance(above, ast.Call) and last_name(above.func) in RESHAPES):
            return None
    return None


def _the_loss(project: Project) -> Iterator[Evidence]:
    """``backward()`` of something that was wrapped anew from plain numbers: certain."""
    for call in project.calls("backward"):
        receiver = call.receiver
        if receiver is None:
            continue
        for step in _spine(project, call):
            node = step.node
            if (
                isinstance(node, ast.Call)
                and last_name(node.func) in WRAPS
                and node.args
                and _computed(project, node, step)
            ):
                yield sighting(__name__, step, "the loss is made anew from a plain number here: nothing flows back")
                break
            if isinstance(node, ast.Call) and last_name(node.func) in ("detach", "item") and not node.args:
                yield sighting(__name__, step, "the loss is cut off from the graph here")
                break


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in surface.calls(project):
        if call.name != "backward" or call.receiver is None:
            continue
        for step in back(project, call.receiver, call.scope):
            node = step.node
            cut = isinstance(node, ast.Call) and last_name(node.func) in (*CUTS, *WRAPS) and project.calls_by_name
            if (cut and _computed(project, node, step)) or (isinstance(node, ast.Attribute) and node.attr == "data"):
                yield guess(__name__, step, "the values leave the graph here", step.chain()[1:3])
                return


def _spine(project: Project, call: Call) -> Iterator[Step]:
    """The loss itself on its way back: through names only, and to the first thing that is computed."""
    assert call.receiver is not None
    for step in back(project, call.receiver, call.scope):
        if all(isinstance(s.node, ast.Name) for s in step.chain()[1:]) and step.scope is call.scope:
            bindings = project.bindings(step.previous.node, call.scope) if step.previous is not None else []
            if len(bindings) <= 1:
                yield step


def _computed(project: Project, node: ast.AST, step: Step) -> bool:
    """True if what is cut off was computed by a model or a loss (not a constant or data)."""
    if not isinstance(node, ast.Call):
        return False
    sources = (
        [node.func.value] if isinstance(node.func, ast.Attribute) and last_name(node.func) in CUTS else node.args[:1]
    )
    for source in sources:
        if isinstance(source, ast.Constant):
            return False
        for below in back(project, source, step.scope):
            text = written(below.node)
            if isinstance(below.node, ast.Call) and any(
                w in text.lower() for w in ("model(", "net(", "loss", "criterion(")
            ):
                return True
            if below.depth > 6:
                break
    return False
