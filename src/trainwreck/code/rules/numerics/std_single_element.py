"""A standard deviation over a single element.

What: ``x.std(dim)`` with Bessel's correction where that dimension has size 1: groups of one, a last batch of one.
Why it matters: it is 0/0, NaN, and whatever is divided by it is NaN too.
When it is fine: with ``correction=0`` (``unbiased=False``) and an epsilon.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.numerics import std_single
from trainwreck.code.rule import guess, sighting
from trainwreck.code.spine import ends
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_false, number
from trainwreck.core.evidence import Evidence

SURFACES = (r"\bnan\b", r"degrees of freedom", r"invalid values")
BAD = """
import torch
def advantages(rewards, group=1):
    grouped = rewards.view(-1, group)
    return (grouped - grouped.mean(1, keepdim=True)) / (grouped.std(dim=1, keepdim=True) + 1e-6)  # expect
def main(r):
    return advantages(r)
def windows(series, size):
    flat = [torch.nn.functional.conv1d(s.view(1, -1), kernel).view(-1, 1) for s in series]
    rows = pad(torch.stack(flat), size)
    return rows.std(dim=1, keepdim=True)
def pad(rows, size):
    return torch.cat([rows, rows.new_zeros(size)])
"""
GOOD = """
import torch
def advantages(rewards, group=8):
    grouped = rewards.view(-1, group)
    return (grouped - grouped.mean(1, keepdim=True)) / (grouped.std(dim=1, keepdim=True) + 1e-6)
def other(x):
    return x.view(-1, 1).std(dim=1, unbiased=False)
def main(r):
    return advantages(r)
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from answers(__name__, project, std_single)


def _written(project: Project) -> Iterator[Evidence]:
    for call in _deviations(project):
        made = _single(project, call)
        if made is not None:
            yield sighting(__name__, call, "the deviation is taken over a dimension of size 1", proof=[made])


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in _deviations(project):
        if call.scope in surface.scopes and call.argument("dim", 0) is not None and _single(project, call) is not None:
            yield guess(__name__, call, "a deviation over a dimension that can have a single element")
            return


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in _deviations(project):
        yield guess(__name__, call, "a deviation is taken here")
        return


def _deviations(project: Project) -> Iterator[Call]:
    for call in project.calls("std", "var", "std_mean", "var_mean"):
        off = is_false(call.argument("unbiased")) or call.argument("correction") is not None
        if not off and not project.called(call).startswith(("numpy", "np.")):
            yield call


def _single(project: Project, call: Call) -> Call | None:
    """The reshape that gives the dimension size 1."""
    dim = call.argument("dim", 0)
    axis = number(project, dim, call.scope) if dim is not None else None
    if axis is None or call.receiver is None:
        return None
    for node, scope in ends(project, call.receiver, call.scope, reshapes=False):
        if isinstance(node, ast.Call) and last_name(node.func) in ("view", "reshape") and len(node.args) == 2:
            place = int(axis) if axis >= 0 else len(node.args) + int(axis)
            if 0 <= place < len(node.args) and number(project, node.args[place], scope) == 1:
                return Call(node, scope)
            return None
    return None
