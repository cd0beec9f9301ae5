"""``strict=False`` where the keys can't match.

What: the state comes from a wrapped or compiled model (or its keys are renamed), is loaded with ``strict=False``,
and nobody looks at what was missing.
Why it matters: nothing is loaded and nothing is said; the model starts from its initial weights.
When it is fine: where the result of ``load_state_dict`` is checked, or only some keys are meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.checkpoints import skipped
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.code.topics import RESTORING
from trainwreck.code.values import is_false
from trainwreck.core.evidence import Evidence

WORDS = RESTORING
BAD = (
    """
import torch
from torch import nn
def main(build, path):
    model = nn.DataParallel(build())
    torch.save(model.state_dict(), path)
    again = build()
    again.load_state_dict(torch.load(path), strict=False)  # expect
""",
    """
def restore(net, blob):
    net.load_state_dict({"module." + k: v for k, v in blob.items()}, strict=False)  # expect
""",
)
GOOD = """
import torch
def main(build, path):
    model = build()
    torch.save(model.state_dict(), path)
    again = build()
    missing = again.load_state_dict(torch.load(path), strict=False)
    again.load_state_dict({k.replace("module.", ""): v for k, v in torch.load(path).items()}, strict=False)
"""
WRAPS = ("DataParallel", "DistributedDataParallel", "DDP", "compile")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), skipped)


def _seen(project: Project) -> Iterator[Evidence]:
    for call in _loose(project):
        argument = call.argument("state_dict", 0)
        if isinstance(argument, ast.DictComp) and _adds_prefix(argument.key) and not _wrapped(project, call):
            yield sighting(
                __name__, call, "the keys get a prefix that the model does not have, and strict=False hides it"
            )
            continue
        savers = [
            c
            for c in project.calls("state_dict")
            if c.receiver is not None
            and _wrapped(project, c)
            and isinstance(project.parent(c.node, c.scope), ast.Call | ast.Dict)
        ]
        if savers and not _wrapped(project, call) and not isinstance(argument, ast.DictComp) and not _strips(call):
            text = "the state was saved from a wrapped model; strict=False hides that no key matches"
            yield sighting(__name__, call, text, proof=savers[:1])


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in _loose(project):
        yield guess(__name__, call, "missing and unexpected keys are not looked at here")
        return


def _loose(project: Project) -> Iterator[Call]:
    for call in project.calls("load_state_dict"):
        ignored = isinstance(project.parent(call.node, call.scope), ast.Expr)
        if is_false(call.argument("strict", 1)) and ignored and call.receiver is not None:
            yield call


def _wrapped(project: Project, call: Call) -> bool:
    assert call.receiver is not None
    made = list(constructors(project, call.receiver, call.scope))
    return bool(made) and made[0].name in WRAPS


def _adds_prefix(key: ast.expr) -> bool:
    if isinstance(key, ast.BinOp) and isinstance(key.op, ast.Add):
        return isinstance(key.left, ast.Constant) and isinstance(key.left.value, str)
    return isinstance(key, ast.JoinedStr) and isinstance(key.values[0], ast.Constant)


def _strips(call: Call) -> bool:
    text = call.scope.module.text
    return any(
        word in text for word in ("removeprefix", "consume_prefix", '.replace("module', ".replace('module", "_orig_mod")
    )
