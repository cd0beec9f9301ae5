"""Functions of the program over boxes, worked out for boxes of ours: overlaps, offsets from anchors and the way back,
and which of several boxes are kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product

from trainwreck.code.calls import last_name, written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.trial.bench import Array
from trainwreck.code.scopes import FunctionNode, Scope

OVERLAP = re.compile(r"(^|_)(box_?|pairwise_?|bbox_?|batch_?)?iou|jaccard|overlap", re.IGNORECASE)
NO_OVERLAP = re.compile(r"[gdc]iou|general|complete|distance|penal|loss|mask|seg|miou|mean|score", re.IGNORECASE)
"""Other measures, and such of masks."""
TO_OFFSETS = re.compile(r"encod|2delta|to_(delta|offset)|get_deltas|regression_target", re.IGNORECASE)
FROM_OFFSETS = re.compile(r"decod|delta2|apply_deltas|from_(delta|offset)", re.IGNORECASE)
SUPPRESSES = re.compile(r"(^|_)nms|suppress", re.IGNORECASE)
CLOSE = 0.03
"""As FCOS adds 1 to lengths, which are about 100 here."""
CORNERS = ((100.0, 120.0, 200.0, 220.0), (300.0, 400.0, 410.0, 550.0), (60.0, 70.0, 180.0, 290.0))
PRIORS = ((130.0, 150.0, 210.0, 240.0), (310.0, 380.0, 430.0, 520.0), (50.0, 90.0, 190.0, 270.0))
SCALES = ((1.0, 1.0), (10.0, 5.0))
"""What offsets of centres and of sizes are multiplied with (SSD divides by variances of 0.1 and 0.2)."""


def overlap_worked_out(run: Rehearsing) -> Iterator[Answer]:
    """An intersection over union that is not 1 for a box with itself, 0 for boxes apart and a third for halves.

    Of several results (the overlap, and the union beside it) it is the first one."""
    for function in _functions(run, 2):
        divides = any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) for n in function.nodes)
        lessened = any(isinstance(n, ast.Return) and _taken_off(n.value) for n in function.nodes)  # a generalised one
        if lessened or not divides or not OVERLAP.search(function.name) or NO_OVERLAP.search(function.name):
            continue
        found = [_overlaps(run, function, layout) for layout in range(3)]
        known = [each for each in found if each is not None]
        # in a layout that the function is meant for, what overlaps more has more
        meant = [(itself, apart, half) for itself, apart, half in known if apart + CLOSE < half < itself - CLOSE]
        if not meant or any(_fits(each) for each in known):
            continue
        itself, apart, half = meant[0]
        if abs(itself - 1) > CLOSE:
            yield Answer(_divided(function), f"the overlap of a box with itself is {itself:.2g} by this, and not 1")
        elif abs(apart) > CLOSE:
            yield Answer(_multiplied(function), f"boxes that lie apart overlap by {apart:.2g} here")
        else:
            yield Answer(_divided(function), f"boxes that share half of their area overlap by {half:.2g}, not by 1/3")
        return


def _taken_off(value: ast.expr | None) -> bool:
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)


def _functions(run: Rehearsing, required: int, most: int | None = None) -> Iterator[Scope]:
    """Functions by themselves that need so many arguments."""
    for function in run.project.functions:
        if isinstance(function.node, FunctionNode) and function.owner is None and not function.node.decorator_list:
            count = len(function.positional) - len(function.node.args.defaults)
            if required <= count <= (most or required):
                yield function


def _worked(run: Rehearsing, function: Scope, *args: object) -> Array | None:
    import numpy as np

    from trainwreck.code.rehearsal.trial.steps import Steps, Unknown

    try:
        found = Steps(run.project).call(function, list(args))
        array = np.asarray(found[0] if isinstance(found, tuple) and found else found)
    except (Unknown, ValueError):
        return None
    return array if array.dtype.kind in "fiub" else None


def _as(boxes: Array, layout: int) -> Array:
    """Boxes by corners as 0: corners, 1: centre and size, 2: the low corner and the size."""
    import numpy as np

    low, size = boxes[:, :2], boxes[:, 2:] - boxes[:, :2]
    return np.concatenate([(low, low + size / 2, low)[layout], (low + size, size, size)[layout]], axis=1)


def _overlaps(run: Rehearsing, function: Scope, layout: int) -> tuple[float, float, float] | None:
    """The overlap of boxes with themselves, with some far away, and with themselves moved by half of their width."""
    import numpy as np

    boxes = np.asarray(CORNERS)
    moved = boxes + (boxes[:, 2:3] - boxes[:, :1]) / 2 * np.asarray([1.0, 0.0, 1.0, 0.0])
    found = []
    for other in (boxes, boxes + 2000.0, moved):
        array = _worked(run, function, _as(boxes, layout), _as(other, layout))
        if array is None:
            array = _worked(run, function, _as(boxes, layout)[0], _as(other, layout)[0])
        if array is None or array.ndim > 2 or not np.isfinite(array).all() or not array.size:
            return None
        values = np.diagonal(array) if array.ndim == 2 and array.shape[0] == array.shape[1] else array
        if np.ptp(values) > CLOSE and np.ptp(values) > 0.5 * abs(values).max():
            return None
        found.append(float(values.reshape(-1)[0]))
    return found[0], found[1], found[2]


def _fits(found: tuple[float, float, float]) -> bool:
    return all(abs(value - wanted) <= CLOSE for value, wanted in zip(found, (1, 0, 1 / 3), strict=True))


def statement_of(function: Scope, wanted: ast.AST) -> Place:
    """The innermost statement that a node stands in."""
    held = [s for s in function.nodes if isinstance(s, ast.Assign | ast.Return | ast.AugAssign | ast.If | ast.While)]
    around = [s for s in held if any(n is wanted for n in ast.walk(s))]
    return (min(around, key=lambda s: sum(1 for _ in ast.walk(s))) if around else wanted), function


def _divided(function: Scope) -> Place:
    found = [n for n in function.nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)]
    return statement_of(function, found[-1]) if found else (function.node, function)


def _multiplied(function: Scope) -> Place:
    products = (n for n in function.nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult))
    called = (n for n in function.nodes if isinstance(n, ast.Call) and last_name(n.func) == "prod")
    found = sorted([*products, *called], key=lambda n: n.lineno)
    return statement_of(function, found[0]) if found else (function.node, function)


# ---------------------------------------------------------------------- offsets from anchors
def offsets_not_undone(run: Rehearsing) -> Iterator[Answer]:
    """One function makes offsets from anchors of boxes, another one makes boxes of them again, and they come out
    elsewhere; and one of the two is as it is written down everywhere (Faster R-CNN, SSD)."""
    away = [f for f in _functions(run, 2) if TO_OFFSETS.search(f.name)]
    back = [f for f in _functions(run, 2) if FROM_OFFSETS.search(f.name)]
    if len(away) != 1 or len(back) != 1:
        return
    ways = list(product(range(2), range(2)))
    made = [_offsets(run, away[0], box, prior, turned) for box, prior in ways for turned in (False, True)]
    kept = [_boxes_of(run, back[0], offsets, prior, turned) for offsets in made if offsets is not None
            for prior in range(2) for turned in (False, True)]  # fmt: skip
    boxes = _boxes()
    if not any(k is not None for k in kept) or any(_same(k, _as(boxes, n)) for k in kept for n in range(2)):
        return
    right_away = any(_same(o, _canonical(scale)) for o in made for scale in SCALES)
    again = [(scale, _boxes_of(run, back[0], _canonical(scale), prior, turned))
             for scale in SCALES for prior in range(2) for turned in (False, True)]  # fmt: skip
    right_back = any(_same(k, _as(boxes, n)) for _, k in again for n in range(2))
    if right_away and not right_back:
        place = _doubled(run, back[0]) or _wrong_half(back[0], [k for _, k in again if k is not None])
        yield Answer(
            place, "what is decoded here is not the box that the offsets were made of", ((away[0].node, away[0]),)
        )
    elif right_back and not right_away:
        wrong = [o for o in made if o is not None]
        yield Answer(_wrong_half_of_offsets(away[0], wrong), "these offsets are not what is decoded to the same box",
                     ((back[0].node, back[0]),))  # fmt: skip


def _boxes() -> Array:
    import numpy as np

    return np.asarray(CORNERS)


def _priors() -> Array:
    import numpy as np

    return np.asarray(PRIORS)


def _same(found: Array | None, wanted: Array) -> bool:
    import numpy as np

    return found is not None and found.shape == wanted.shape and bool(np.allclose(found, wanted, rtol=1e-3, atol=1e-3))


def _canonical(scale: tuple[float, float]) -> Array:
    import numpy as np

    box, prior = _as(_boxes(), 1), _as(_priors(), 1)
    moved = (box[:, :2] - prior[:, :2]) / prior[:, 2:] * scale[0]
    return np.concatenate([moved, np.log(box[:, 2:] / prior[:, 2:]) * scale[1]], axis=1)


def _offsets(run: Rehearsing, function: Scope, box: int, prior: int, turned: bool) -> Array | None:
    given = (_as(_boxes(), box), _as(_priors(), prior))
    found = _worked(run, function, *(given[::-1] if turned else given))
    return found if found is not None and found.shape == (len(CORNERS), 4) else None


def _boxes_of(run: Rehearsing, function: Scope, offsets: Array, prior: int, turned: bool) -> Array | None:
    given = (offsets, _as(_priors(), prior))
    found = _worked(run, function, *(given[::-1] if turned else given))
    return found if found is not None and found.shape == (len(CORNERS), 4) else None


def _doubled(run: Rehearsing, function: Scope) -> Place | None:
    """A helper that is to make corners of centres and sizes, and takes off and adds the whole size."""
    import numpy as np

    boxes = _as(_boxes(), 1)
    wrong = np.concatenate([boxes[:, :2] - boxes[:, 2:], boxes[:, :2] + boxes[:, 2:]], axis=1)
    called = {last_name(n.func) for n in function.nodes if isinstance(n, ast.Call)}
    for helper in _functions(run, 1):
        if helper.name in called and _same(_worked(run, helper, boxes), wrong):
            returned = [n for n in helper.nodes if isinstance(n, ast.Return)]
            return (returned[-1] if returned else helper.node), helper
    return None


def _wrong_half(function: Scope, found: list[Array]) -> Place:
    """Where the size is decoded, if only that is wrong, else where the centre is, if only that is."""
    return _half(function, [(k, _as(_boxes(), 1)) for f in found for k in (f, _as(f, 1))])


def _wrong_half_of_offsets(function: Scope, found: list[Array]) -> Place:
    return _half(function, [(f, _canonical(scale)) for f in found for scale in SCALES])


def _half(function: Scope, pairs: list[tuple[Array, Array]]) -> Place:
    """The statement that works out the half that is wrong: the centres or the sizes."""
    import numpy as np

    halves = [tuple(bool(np.allclose(f[:, h], w[:, h], rtol=1e-3, atol=1e-3)) for h in HALVES) for f, w in pairs]
    wrong = next((centre for centre, size in halves if centre is not size), None)
    statements = [n for n in function.nodes if isinstance(n, ast.Assign | ast.Return)]
    sizes = [s for s in statements if any(last_name(c.func) in ("exp", "log") for c in _calls(s))]
    sizes = sizes or [s for s in statements if re.search(r"\b2:|\[\.\.\., [23]\]|\[:, [23]\]", written(s))]
    rest = [s for s in statements if s not in sizes and not SIZE.search(written(s))]
    centres = [s for s in rest if re.search(r":2\b|\[\.\.\., [01]\]|\[:, [01]\]", written(s))]
    chosen = (sizes if wrong else centres if wrong is not None else []) or statements
    return (chosen[0] if chosen else function.node), function


SIZE = re.compile(r"(\w+)\[[^\]]*2:\] - \1\[[^\]]*:2\]")
"""A size that is taken of corners."""
HALVES = (slice(0, 2), slice(2, 4))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Call))


# ---------------------------------------------------------------------- which of several are kept
def worst_kept(run: Rehearsing) -> Iterator[Answer]:
    """Of two boxes that overlap the one with the lower score is kept, or those that overlap nothing are left out."""
    import numpy as np

    boxes = np.asarray([[0, 0, 100, 100], [5, 5, 105, 105], [500, 500, 600, 600.0]])
    scores = np.asarray([0.9, 0.8, 0.95])
    for function in _functions(run, 2, 3):
        if not SUPPRESSES.search(function.name):
            continue
        limit = (0.5,) * (len(function.positional) - 2) if _needs(function) == 3 else ()
        for given in ((boxes, scores), (scores, boxes)):
            found = _worked(run, function, *given, *limit)
            if found is None or found.ndim != 1:
                continue
            kept = set(np.flatnonzero(found).tolist()) if found.dtype == bool else {int(k) for k in found.tolist()}
            if kept == {1, 2}:
                sorts = [c for n in function.nodes for c in [n] if isinstance(c, ast.Call)
                         and last_name(c.func) in ("argsort", "sort", "sorted")]  # fmt: skip
                place = statement_of(function, sorts[0]) if sorts else (function.node, function)
                yield Answer(place, "of two boxes that overlap the one with the lower score is kept")
                return
            if kept == {2}:
                tests = [n for n in function.nodes if isinstance(n, ast.Compare)
                         and isinstance(n.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE)]  # fmt: skip
                place = statement_of(function, tests[-1]) if tests else (function.node, function)
                yield Answer(place, "boxes that do not overlap the best one are left out, and not those that do")
                return


def _needs(function: Scope) -> int:
    defaults = len(function.node.args.defaults) if isinstance(function.node, FunctionNode) else 0
    return len(function.positional) - defaults


__all__ = ["offsets_not_undone", "overlap_worked_out", "statement_of", "worst_kept"]
