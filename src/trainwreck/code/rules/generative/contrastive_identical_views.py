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
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.attraction import itself, same_view
from trainwreck.code.rehearsal.questions.corrupted import written_over
from trainwreck.code.rehearsal.questions.own_partner import same_numbers
from trainwreck.code.rehearsal.questions.views import identical
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
    """
def fit(net, images, opt, agreement):
    for x in images:
        left = right = corrupt(x)  # expect
        (_, p), (_, q) = net(left), net(right)
        loss = agreement(p, q)
        loss.backward()
        opt.step()
""",
    """
class Learner:
    def views(self, x):
        seen = self.jitter(x)
        return seen, seen  # expect
    def update(self, x):
        one, other = self.views(x)
        loss = -self.cosine(self.net(one), self.net(other)).mean()
        loss.backward()
        self.opt.step()
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
def siblings(net, head, loader, opt, loss_fn):
    for x in loader:
        left = right = crop(x)
        right = flip(right)
        loss_fn(net(left), net(right)).backward()
        inputs = targets = shift(x)
        loss_fn(net(inputs), targets).backward()
        shown = kept = crop(x)
        loss_fn(net(shown), head(kept)).backward()
        opt.step()
"""
CONTRAST = pattern(
    r"nt_?xent|info_?nce|contrast|simclr|byol|simsiam|barlow|vicreg|moco|\btwo.?views?|positive pair", re.IGNORECASE
)
"""Words of the method in names; without one a double call may be anything."""
VIEWS = pattern(
    r"^(x|v|im|img|image|view|aug|a|b|xi|xj|crop)?_?(1|2|a|b|i|j|one|two|left|right|view\w*)?$", re.IGNORECASE
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), identical, same_view, itself, written_over, same_numbers)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _one_tensor(project)
    if not CONTRAST.search(source(project)):
        return
    yield from _same_argument(project)
    yield from _same_view(project)


def _one_tensor(project: Project) -> Iterator[Evidence]:
    """Two names of one computed tensor, each given to the same network, and both results to one comparison.

    A second name for the same tensor is only written where a second tensor was meant."""
    if _drops(project):
        return
    told: set[int] = set()
    for scope in {c.scope for c in project.calls("backward")} | {
        s for s in project.functions if s.name in ("training_step", "forward", "compute_loss")
    }:
        computed: dict[str, tuple[ast.AST, Scope, tuple[int, ...]]] = {}
        for name, bindings in scope.bindings.items():
            if len(bindings) == 1:
                for node, where, key in _sources(project, bindings[0]):
                    computed[name] = (node, where, key)
        same: dict[tuple[int, ...], list[str]] = {}
        for name in computed:
            same.setdefault(computed[name][2], []).append(name)
        for names in same.values():
            if len(names) < 2 or not _encoded_alike(project, scope, names):
                continue
            node, where, _ = max((computed[n] for n in names), key=lambda at: getattr(at[0], "lineno", 0))
            if id(node) not in told:
                told.add(id(node))
                yield sighting(__name__, (node, where), f"{' and '.join(sorted(names))} are the same tensor")


def _sources(project: Project, binding: Binding) -> Iterator[tuple[ast.AST, Scope, tuple[int, ...]]]:
    """Where the name is made, and the computation it stands for: a call, through other names, pairs and returns.

    Two calls of a function are two computations: the calls that lead to it are part of what is told."""
    calls: list[int] = []
    value, path, scope = binding.value, list(binding.path), binding.scope
    place: ast.AST = binding.node
    if binding.kind != "assign":
        return
    for _ in range(8):
        if path and isinstance(value, ast.Tuple | ast.List):
            index = path[0]
            if not isinstance(index, int) or index >= len(value.elts):
                return
            value, path = value.elts[index], path[1:]
        elif path and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            parts = value.left if isinstance(value.left, ast.Tuple | ast.List) else None
            if parts is None or len(parts.elts) != 1:
                return
            value, path = parts.elts[0], path[1:]
        elif isinstance(value, ast.Name):
            made = scope.bindings.get(value.id, [])
            if len(made) != 1 or made[0].kind != "assign" or made[0].value is None:
                return
            value, path = made[0].value, [*made[0].path, *path]
        elif path and isinstance(value, ast.Call):
            target = project.resolve(value.func, scope)
            if target is None or target.kind != "function" or len(target.returns) != 1 or target.returns[0] is None:
                return
            calls.append(id(value))
            value, scope = target.returns[0], target
            place = project.statement(value, scope)
        else:
            break
    if isinstance(value, ast.Call) and value.args and not path:
        yield place, scope, (*calls, id(value))


def _encoded_alike(project: Project, scope: Scope, names: list[str]) -> bool:
    """True if one network gets each of two ``names``, alone, in one block, and both results are compared."""
    by_network: dict[str, list[ast.Call]] = {}
    for node in project.within(scope, ast.Call):
        given_one = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else None
        if isinstance(node, ast.Call) and isinstance(given_one, ast.Name) and given_one.id in names:
            by_network.setdefault(written(node.func), []).append(node)
    for calls in by_network.values():
        given = {c.args[0].id for c in calls if isinstance(c.args[0], ast.Name)}
        if len(given) < 2 or len({id(project.statement(c, scope)) for c in calls}) > len(given):
            continue
        results = {
            b.name
            for bindings in scope.bindings.values()
            for b in bindings
            if _value(b) is not None and any(_value(b) is c for c in calls)
        }
        nested = any(
            sum(any(part is c for part in ast.walk(node)) for c in calls) > 1
            for node in project.within(scope, ast.Call, ast.BinOp)
        )
        if nested or _compared(project, scope, results):
            return True
    return False


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
