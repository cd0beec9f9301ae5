"""Whose statistics data are scaled with: the evaluation has its own where the training's were to be handed on?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import inputs_of, made_by
from trainwreck.code.rehearsal.questions.paths import Path
from trainwreck.code.rehearsal.questions.splits import keys, sides
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
        for scale, summary in scaled(path):
            taught.setdefault(id(scale.place[0]) if scale.place else 0, []).append((path, summary))
    told: set[int] = set()
    for _, path in both.held:
        for scale, summary in scaled(path):
            if scale.place is None or id(scale.place[0]) not in taught or not _handed(run, summary, scale):
                continue
            others = taught[id(scale.place[0])]
            if not _of_path(summary, path) or any(summary is other for _, other in others):
                continue
            mine = [(p, s) for p, s in others if _of_path(s, p)]
            if not mine or _same_rows(mine[0][0], path):
                continue
            if mine[0][0].root is path.root and not any(n is i for n in path.nodes for i in summary.inputs):
                continue  # both are parts of one array, and the statistic may be of the other part
            place = _apart(summary, mine[0][1])
            if place is not None and id(place[0]) not in told:
                told.add(id(place[0]))
                text = "the evaluation is scaled by statistics of its own here, not by those of the training data"
                yield Answer(place, text, tuple(p for p in (mine[0][1].place, scale.place) if p is not None))


def _same_rows(one: Path, other: Path) -> bool:
    """True where nothing says that the two are different parts of the data."""
    mine, theirs = keys(one), keys(other)
    return one.root is other.root and (not mine or not theirs or mine == theirs)


def scaled(path: Path, *, every: bool = False) -> Iterator[tuple[Node, Node]]:
    """Subtractions and divisions on the way, each with the statistic over all rows that it is done with.

    ``every``: over whichever axes."""
    for node, before in zip(path.nodes[1:], path.nodes, strict=False):
        if node.op in SCALES and len(node.inputs) > 1 and node.inputs[1] is not before:
            summary = next((n for n in ancestors(node.inputs[1], through=_works_out) if n.op in SUMMARIES), None)
            if summary is not None and (every or _over_rows(summary)):
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


JOINED = frozenset(["stack", "vstack", "concatenate", "cat"])


def fitted_twice(run: Rehearsing) -> Iterator[Answer]:
    """The training is scaled by its mean and spread in one line, the evaluation by its own in another.

    Each statistic is of just what it scales, and both are written out: no function scales whatever it is given."""
    both = sides(run)
    train = [(p, scale, s) for p in both.train for scale, s in scaled(p) if _itself(p, s)]
    if not train:
        return
    known = {id(s) for _, _, s in train}
    lines = {id(at[0]) for _, scale, s in train for at in (scale.place, s.place) if at is not None}
    for event, path in both.held:
        for scale, summary in scaled(path):
            if scale.place is None or summary.place is None or id(summary) in known or not _itself(path, summary):
                continue
            if {id(scale.place[0]), id(summary.place[0])} & lines or scale.turns or summary.turns:
                continue
            if scale.place[1].kind == "function" and scale.stack and _called_twice(run, scale):
                continue
            if any(_same_rows(p, path) for p, _, _ in train):
                continue
            text = "the evaluation is scaled by statistics of its own here, not by those of the training data"
            proof = (train[0][2].place, event.place)
            yield Answer(summary.place, text, tuple(p for p in proof if p is not None))
            return


def _itself(path: Path, summary: Node) -> bool:
    """True for a statistic of just what lies on the way."""
    return any(n is i for n in path.nodes for i in summary.inputs)


def _called_twice(run: Rehearsing, scale: Node) -> bool:
    """True for a line that scales several arrays: the function is meant for whatever it is given."""
    place = scale.place[0] if scale.place is not None else None
    same = [n for n in run.nodes if n.op == scale.op and n.place is not None and n.place[0] is place]
    return len({id(n.inputs[0]) for n in same if n.inputs}) > 1


PICKED = frozenset(["element", "batch", "index"])
"""What stands for one sample, or one batch, of the data."""


def each_by_its_own(run: Rehearsing) -> Iterator[Answer]:
    """The training is scaled with one mean and spread for all, the evaluation by those of each sample or batch."""
    train, held = inputs_of(run)
    taught: dict[tuple[int, int], list[tuple[bool, bool]]] = {}
    for event, path in train:
        found = [_of_one(path, summary) or not _over_rows(summary) for _, summary in scaled(path, every=True)]
        joined = [_of_several(path, summary) for _, summary in scaled(path, every=True)]
        whole = bool(found) and not any(found)
        taught.setdefault((id(event.subject), made_by(path)), []).append((whole, whole and all(joined)))
    for event, path in held:
        known = taught.get((id(event.subject), made_by(path)), [])
        if not known or not all(whole for whole, _ in known):
            continue
        joined_there = all(joined for _, joined in known)
        alone = [
            (scale, summary)
            for scale, summary in scaled(path, every=True)
            if any(n is i for n in path.nodes for i in summary.inputs)
            and (_of_one(path, summary) or (joined_there and not _of_several(path, summary)))
        ]
        if len(alone) > 1 and {scale.op for scale, _ in alone} == SCALES and alone[0][1].place is not None:
            text = "the training is scaled with one mean and spread for all, and this with those of each input alone"
            yield Answer(alone[0][1].place, text, (event.place,) if event.place is not None else ())
            return


def _of_one(path: Path, summary: Node) -> bool:
    """True for a statistic of what was picked from the data before, on the way of the very data that it scales."""
    inside = {id(n) for i in summary.inputs for p in parts(i) for n in ancestors(p)}
    return any(n.op in PICKED for n in path.nodes if id(n) in inside)


def _of_several(path: Path, summary: Node) -> bool:
    """True for a statistic of samples that were put together from a list."""
    inside = {id(n) for i in summary.inputs for p in parts(i) for n in ancestors(p)}
    lists = (n.inputs[0] for n in path.nodes if n.op in JOINED and n.inputs and id(n) in inside)
    return any(isinstance(held, Items) and held.more for held in lists)
