"""The rows that are held out are also trained on.

What: the training set is the whole table although validation rows are sliced from the same table.
Why it matters: validation measures memory, not generalisation.
When it is fine: for a final fit after the choice was made.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import assigned_name
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torchvision.datasets import MNIST
train = MNIST("d", train=True)
test = MNIST("d", train=True)  # expect
""",
    """
def main(x, y):
    n_val = 100
    x_train, y_train = x, y  # expect
    x_val, y_val = x[:n_val], y[:n_val]
    return x_train, x_val
""",
)
GOOD = """
def main(x, y):
    n_val = 100
    x_train, y_train = x[n_val:], y[n_val:]
    x_val, y_val = x[:n_val], y[:n_val]
    return x_train, x_val
"""
TRAIN = re.compile(r"(^|_)(tr|train|training|fit)(_|$)|^train", re.IGNORECASE)
HELD = re.compile(r"(^|_)(va|val|valid|validation|dev|test|te|holdout|eval)(_|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from _same_split(project)
    yield from _sliced(project)


def _same_split(project: Project) -> Iterator[Evidence]:
    """A set that is named as evaluation data says ``train=True`` or ``split="train"`` like the training set."""
    for walked in project.walked.values():
        if re.search(r"Subset|random_split|Sampler|\.select\(|train_test_split", walked.top.module.text):
            continue
        named: list[tuple[str, Call]] = []
        for node, scope in walked.calls:
            call = Call(node, scope)
            said = [k for k in node.keywords if k.arg in ("train", "split") and isinstance(k.value, ast.Constant)]
            if len(said) == 1 and isinstance(said[0].value, ast.Constant) and said[0].value.value in (True, "train"):
                named.append((assigned_name(project, call), call))
        for name, call in named:
            if not HELD.search(name) or TRAIN.search(name):
                continue
            other = next(
                (c for n, c in named if TRAIN.search(n) and c.name == call.name and c.scope is call.scope), None
            )
            if other is not None and [written(a) for a in other.node.args] == [written(a) for a in call.node.args]:
                text = f"{name} is read from the training split, like the training data"
                yield sighting(__name__, call, text, proof=[other])


def _sliced(project: Project) -> Iterator[Evidence]:
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        whole = {n: b for n, b in _single(scope) if TRAIN.search(n) and isinstance(_value(b), ast.Name)}
        told: set[int] = set()
        for held, cut in _single(scope):
            value = _value(cut)
            if (
                not HELD.search(held)
                or TRAIN.search(held)
                or not isinstance(value, ast.Subscript)
                or not isinstance(value.slice, ast.Slice)
            ):
                continue
            base = written(value.value)
            for name, binding in whole.items():
                if (
                    written(_value(binding)) == base
                    and binding.line not in told
                    and _unchanged(scope, base, binding, cut)
                ):
                    told.add(binding.line)
                    text = f"{name} is all of {base}, and {held} is a part of it"
                    yield sighting(
                        __name__,
                        (binding.node, scope),
                        text,
                        proof=[(scope.module.path, cut.line, written(cut.node)[:80])],
                    )


def _single(scope: Scope) -> Iterator[tuple[str, Binding]]:
    for name, bindings in scope.bindings.items():
        assigned = [b for b in bindings if b.kind == "assign"]
        if len(assigned) == 1:
            yield name, assigned[0]


def _value(binding: Binding) -> ast.expr | None:
    value = binding.value
    for part in binding.path:
        if isinstance(value, ast.Tuple) and isinstance(part, int) and part < len(value.elts):
            value = value.elts[part]
        else:
            return None
    return value


def _unchanged(scope: Scope, base: str, one: Binding, other: Binding) -> bool:
    low, high = sorted((one.line, other.line))
    return not any(low < b.line <= high and b.kind == "assign" for b in scope.bindings.get(base, ()))
