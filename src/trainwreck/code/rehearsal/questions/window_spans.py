"""Windows of one series for training and for the evaluation, made by one function from spans that overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import feeding, meets, statistic
from trainwreck.code.rehearsal.questions.redrawn import held_out
from trainwreck.code.rehearsal.questions.roles import backwards, bounds

NEAR = 80
"""Values behind a batch among which the cuts of its windows are."""


def spans_overlap(run: Rehearsing) -> Iterator[Answer]:
    """The elements that are forecast in the evaluation are targets of the training too.

    That windows reach back into the training is as it should be: only what is to be forecast counts."""
    taught: dict[int, list[Node]] = {}
    for event in backwards(run):
        for _, _, outside in meets(event.subject):
            for node in ancestors(tuple(outside), through=lambda n: not statistic(n)):
                if node.place is not None and _span(node) is not None:
                    taught.setdefault(id(node.place[0]), []).append(node)
    used = feeding(run) if taught else set()
    for node in run.nodes if taught else ():
        place = node.place if id(node) not in used else None
        mine = _span(node) if place is not None else None
        if mine is None or place is None:
            continue
        for other in taught.get(id(place[0]), ()):
            theirs = _span(other)
            if (
                theirs is None
                or _series(node) is not _series(other)
                or not (mine[0] < theirs[1] and theirs[0] < mine[1])
            ):
                continue
            call, beside = _call(node, other), other.place
            if call is None or not held_out(run, call):
                call, beside = _loaded(run, node), _loaded(run, other)
                if call is None or beside is None or call[0] is beside[0] or not held_out(run, call):
                    continue
                if theirs[0] < mine[0] and mine[1] <= theirs[1]:  # all of it is trained on: that span goes too far
                    call, beside = beside, call
            text = "what is forecast in the evaluation reaches into the span that is trained on: it has been seen"
            yield Answer(call, text, (beside,) if beside is not None else ())
            return


def scaled_over_all_times(run: Rehearsing) -> Iterator[Answer]:
    """Series beside each other, each standardised with its mean or spread over all times: windows of the evaluation
    reach further than those of the training, and what comes then is known to the figures already."""
    used = feeding(run)
    cuts = [(n, span) for n in run.nodes if (span := _span(n)) is not None and _of_one_row(n)]
    late = [(n, span) for n, span in cuts if id(n) not in used]
    early = [(n, span) for n, span in cuts if id(n) in used]
    for node, (_, end) in late if early else ():
        series = _series(node)
        theirs = [(n, span[1]) for n, span in early if _series(n) is series]
        if series is None or not theirs or end <= max(high for _, high in theirs):
            continue
        loaded = _loaded(run, node)
        if loaded is None or not held_out(run, loaded):
            continue
        for step in near(series, NEAR):
            for figure in step.inputs[1:] if step.op in ("sub", "div") else ():
                made = _over_time(figure)
                if made is None or made.place is None or not isinstance(made.inputs[0], Node):
                    continue
                length = made.inputs[0].shape.dims[1] if len(made.inputs[0].shape.dims) == AXES else None
                if length is not None and length >= end:
                    last = max(high for _, high in theirs)
                    text = f"this is taken over all {length} times; the training ends before {last:.0f}"
                    yield Answer(made.place, text, (loaded,))
                    return


AXES = 2
"""Series by times."""


def _of_one_row(node: Node) -> bool:
    index = node.inputs[1] if len(node.inputs) > 1 else None
    return isinstance(index, tuple) and len(index) == AXES and isinstance(index[0], Node)


def _over_time(figure: object) -> Node | None:
    """The mean or spread along the second axis that a figure is."""
    for _ in range(4):
        if not isinstance(figure, Node) or not figure.inputs:
            return None
        if figure.op in ("mean", "std", "nanmean", "nanstd", "median", "min", "max", "amin", "amax"):
            axis = figure.options.get("axis", figure.options.get("dim", (*figure.inputs, None)[1]))
            return figure if axis in (1, -1) and not figure.inputs[0].shape.open else None
        if figure.op not in ("add", "clip", "clamp", "maximum", "astype", "getitem", "sub", "float"):
            return None
        figure = figure.inputs[0]
    return None


def _loaded(run: Rehearsing, node: Node) -> Place | None:
    """Where the loader is made that serves what the windows are put together to."""
    loaders: dict[int, Obj] = run.memo.get("loaders of values") or {}
    if not loaders:
        for batch in run.nodes:
            if batch.op == "batch" and batch.owner is not None and batch.owner.place is not None:
                loaders.update({id(n): batch.owner for n in near(batch, NEAR) if id(n) not in loaders})
        run.memo["loaders of values"] = loaders
    loader = loaders.get(id(node))
    return loader.place if loader is not None else None


def _span(node: Node) -> tuple[float, float] | None:
    """From which element to which one the windows of all turns reach that a slice cuts out."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    index = index[-1] if isinstance(index, tuple) and index else index
    if not isinstance(index, Obj) or index.kind != "builtins.slice" or len(index.args) < 2:
        return None
    if not all(isinstance(a, Node) for a in index.args[:2]):
        return None  # the first turn, or a cut that stays the same
    low, high = bounds(index.args[0]).low, bounds(index.args[1]).high - 1  # a count ends before its upper bound
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _series(node: Node) -> Node | None:
    """What the windows are cut from, of whichever row."""
    base = node.inputs[0]
    while isinstance(base, Node) and base.op in ("element", "part") and base.inputs:
        base = base.inputs[0]
    return base if isinstance(base, Node) else None


def _call(node: Node, other: Node) -> Place | None:
    """The call that one of them was made in, and the other was not."""
    theirs = {id(p[0]) for p in other.stack}
    return next((p for p in node.stack if id(p[0]) not in theirs), None)


__all__ = ["scaled_over_all_times", "spans_overlap"]
