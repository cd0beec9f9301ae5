"""Both sides of a contrastive (or self-supervised) pair are computed from the same view.

What: two embeddings that a pair loss compares are made by the same network from the same expression, while the batch
(or the data set) holds two views; or the data set returns one augmented tensor twice.
Why it matters: a pair that is equal by construction teaches nothing; the loss is low from the start and the embedding
collapses or learns to tell samples apart by noise.
When it is fine: where dropout makes the two passes different (SimCSE, arXiv:2104.08821), and where one pass is a
teacher's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import DROPOUTS, source
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
def train(net, loader, opt, nt_xent):
    for a, b, _ in loader:
        _, za = net(a)
        _, zb = net(a)  # expect
        loss = nt_xent(za, zb, 0.2)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
class Trainer:
    def step(self, batch):
        view1, view2 = batch["v1"], batch["v2"]
        z1, z2 = self.encoder(view1), self.encoder(view1)  # expect
        loss = self.info_nce(z1, z2)
        loss.backward()
""",
    """
from torch.utils.data import Dataset
class Pairs(Dataset):
    def __getitem__(self, i):
        view = self.augment(self.images[i])
        return view, view  # expect
def train(loader, model, opt, info_nce):
    for a, b in loader:
        info_nce(model(a), model(b)).backward()
        opt.step()
""",
)
GOOD = """
from torch.utils.data import Dataset
class Pairs(Dataset):
    def __getitem__(self, i):
        x = self.images[i]
        return self.augment(x), self.augment(x)
def train(net, teacher, loader, opt, nt_xent):
    for a, b, _ in loader:
        za, zb = net(a), net(b)
        target = teacher(a)
        loss = nt_xent(za, zb, 0.2) + nt_xent(za, target, 0.1)
        loss.backward()
        opt.step()
        before = net(a)
        opt.step()
        after = net(a)
"""
CONTRAST = re.compile(
    r"nt_?xent|info_?nce|contrast|simclr|byol|simsiam|barlow|vicreg|moco|\btwo.?views?|positive pair", re.IGNORECASE
)
"""Words of the method in names; without one a double call may be anything."""
VIEWS = re.compile(
    r"^(x|v|im|img|image|view|aug|a|b|xi|xj|crop)?_?(1|2|a|b|i|j|one|two|left|right|view\w*)?$", re.IGNORECASE
)


def find(project: Project) -> Iterator[Evidence]:
    if not CONTRAST.search(source(project)):
        return
    yield from _same_argument(project)
    yield from _same_view(project)


def _same_argument(project: Project) -> Iterator[Evidence]:
    for scope in {c.scope for c in project.calls("backward")}:
        made: dict[tuple[str, str], list[tuple[Binding, ast.Call]]] = {}
        for bindings in scope.bindings.values():
            for binding in bindings:
                call = _value(binding)
                if call is not None and len(call.args) == 1 and not call.keywords and _plain(call.args[0]):
                    made.setdefault((written(call.func), written(call.args[0])), []).append((binding, call))
        for (network, argument), pairs in made.items():
            names = {b.name for b, _ in pairs}
            calls = {id(c): (b, c) for b, c in pairs}
            if len(names) < 2 or len(calls) != 2 or _drops(project) or not _in_same_block(project, scope, pairs):
                continue
            if not _compared(project, scope, names) or not _partner(project, scope, argument):
                continue
            _, last = max(calls.values(), key=lambda p: (p[1].lineno, p[1].col_offset))
            yield sighting(
                __name__, (last, scope), f"both sides of the pair are {network}({argument}); the other view is not used"
            )


def _value(binding: Binding) -> ast.Call | None:
    """The call that a binding takes (a part of) its value from."""
    value = binding.value
    if binding.kind != "assign" or value is None:
        return None
    if binding.path and isinstance(value, ast.Tuple) and isinstance(binding.path[0], int):
        value = value.elts[binding.path[0]] if binding.path[0] < len(value.elts) else None
    return value if isinstance(value, ast.Call) and isinstance(value.func, ast.Name | ast.Attribute) else None


def _plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) or (isinstance(node, ast.Subscript) and _plain(node.value))


def _in_same_block(project: Project, scope: Scope, pairs: list[tuple[Binding, ast.Call]]) -> bool:
    around = {id(loops(project, c, scope)[0]) if loops(project, c, scope) else 0 for _, c in pairs}
    blocks = {id(project.parent(b.node, scope)) for b, _ in pairs}
    return len(around) == 1 and len(blocks) == 1


def _drops(project: Project) -> bool:
    return any(True for _ in project.calls(*sorted(DROPOUTS), "dropout"))


def _compared(project: Project, scope: Scope, names: set[str]) -> bool:
    """True if one call or product takes two of the embeddings."""
    for node in project.within(scope, ast.Call, ast.BinOp):
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if len(names & used) > 1:
            return True
    return False


def _partner(project: Project, scope: Scope, argument: str) -> bool:
    """True if ``argument`` was unpacked beside another view that no network gets."""
    for binding in scope.bindings.get(argument, ()):
        if not binding.path:
            continue
        beside = {
            b.name
            for bindings in scope.bindings.values()
            for b in bindings
            if b.node is binding.node and b is not binding
        }
        for other in beside:
            if other.startswith("_") or not VIEWS.match(other):
                continue
            read = [
                n
                for n in project.within(scope, ast.Name)
                if isinstance(n, ast.Name) and n.id == other and isinstance(n.ctx, ast.Load)
            ]
            if all(_moves(project, n, scope) for n in read):
                return True
    return False


def _moves(project: Project, node: ast.AST, scope: Scope) -> bool:
    """True for a use that is no use: ``b = b.to(device)``."""
    statement = project.statement(node, scope)
    return isinstance(statement, ast.Assign) and bool(re.search(r"\.to\(|cuda", written(statement)))


def _same_view(project: Project) -> Iterator[Evidence]:
    for owner in project.classes:
        getter = owner.method("__getitem__")
        if getter is None:
            continue
        for value in getter.returns:
            if not isinstance(value, ast.Tuple) or len(value.elts) < 2:
                continue
            first, second = value.elts[:2]
            if isinstance(first, ast.Name) and written(first) == written(second) and _augmented(getter, first.id):
                yield sighting(__name__, (value, getter), f"both views are the same tensor {first.id}")


def _augmented(getter: Scope, name: str) -> bool:
    for binding in getter.bindings.get(name, ()):
        if isinstance(binding.value, ast.Call) and re.search(
            r"aug|transform|view|crop|jitter|noise|t\d?$", last_name(binding.value.func), re.IGNORECASE
        ):
            return True
    return False
