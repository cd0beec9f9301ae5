"""Whose statistics data are scaled with: the evaluation has its own where the training's were to be handed on?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import Path
from trainwreck.code.rehearsal.questions.splits import sides
from trainwreck.code.scopes import FunctionNode

SCALES = frozenset(["sub", "div"])
SUMMARIES = frozenset("mean std var min max median quantile percentile amax amin nanmean nanstd nanmedian".split())
WORKS_OUT = frozenset("add sub clip clamp maximum sqrt mul astype float item part getitem either or clamp_min".split())


def own_statistics(run: Rehearsing) -> Iterator[Answer]:
    """One line scales both sides, each by its own mean or spread, though these come to it from elsewhere.

    A function that scales what it is given by itself is asked for no more: it may be meant for each part alone."""
    both = sides(run)
    taught: dict[int, list[tuple[Path, Node]]] = {}
    for path in both.train:
        for scale, summary in _scaled(path):
            taught.setdefault(id(scale.place[0]) if scale.place else 0, []).append((path, summary))
    told: set[int] = set()
    for _, path in both.held:
        for scale, summary in _scaled(path):
            if scale.place is None or id(scale.place[0]) not in taught or not _handed(run, summary, scale):
                continue
            others = taught[id(scale.place[0])]
            if not _of_path(summary, path) or any(summary is other for _, other in others):
                continue
            mine = [(p, s) for p, s in others if _of_path(s, p)]
            if not mine or mine[0][0].root is path.root:
                continue
            place = _apart(summary, mine[0][1])
            if place is not None and id(place[0]) not in told:
                told.add(id(place[0]))
                text = "the evaluation is scaled by statistics of its own here, not by those of the training data"
                yield Answer(place, text, tuple(p for p in (mine[0][1].place, scale.place) if p is not None))


def _scaled(path: Path) -> Iterator[tuple[Node, Node]]:
    """Subtractions and divisions on the way, each with the statistic over all rows that it is done with."""
    for node, before in zip(path.nodes[1:], path.nodes, strict=False):
        if node.op in SCALES and len(node.inputs) > 1 and node.inputs[1] is not before:
            summary = next((n for n in ancestors(node.inputs[1], through=_works_out) if n.op in SUMMARIES), None)
            if summary is not None and _over_rows(summary):
                yield node, summary


def _works_out(node: Node) -> bool:
    return node.op in WORKS_OUT


def _over_rows(node: Node) -> bool:
    axis = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else None))
    return axis in (None, 0) or (isinstance(axis, tuple) and 0 in axis)


def _of_path(summary: Node, path: Path) -> bool:
    """True for a statistic of what is scaled itself."""
    own = {id(n) for n in path.nodes}
    return any(id(n) in own for i in summary.inputs for p in parts(i) for n in ancestors(p))


def _handed(run: Rehearsing, summary: Node, scale: Node) -> bool:
    """True where the statistic comes to the line that scales from another function, or only where none was given."""
    if summary.place is None or scale.place is None:
        return False
    node, scope = summary.place
    if scope is scale.place[1]:
        return False
    function = scope.node if isinstance(scope.node, FunctionNode) else None
    if function is None:
        return True
    given = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    chosen = [a for a in run.project.ancestors(node, scope) if isinstance(a, ast.BoolOp | ast.IfExp | ast.If)]
    tests = [n for a in chosen for n in ast.walk(a.test if isinstance(a, ast.IfExp | ast.If) else a.values[0])]
    if any(isinstance(n, ast.Name) and n.id in given for n in tests):
        return True
    return scope.owner is None or scope.owner is not scale.place[1].owner


def _apart(summary: Node, other: Node) -> Place | None:
    """The call that leads to the one statistic and not to the other."""
    shared = {id(p[0]) for p in (*other.stack, other.place) if p is not None}
    return next((p for p in (*summary.stack, summary.place) if p is not None and id(p[0]) not in shared), None)
