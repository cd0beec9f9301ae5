"""Losses over pairs and triplets of which the program says what belongs together: which way do they pull?

Pairs are told by comparing what the two are of (``a == b``), triplets by the group that two of the three were drawn
from (``x[g, i]``, ``x[g, j]`` and ``x[h, k]``). It is worked out for outputs as they should be and as they shouldn't.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.pulling import CLEAR, DRAWS, Part, output_of_layer, summands
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, given, trained
from trainwreck.code.rehearsal.questions.scenes import leaf, sizes
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown
from trainwreck.core.row import Row

MOST = 200
WIDE = 3.0
"""How far apart the outputs of what does not belong together lie, in sizes of an output: above usual margins."""


class Compared(Row):
    """A summand of an objective, the outputs that it compares (of one network), and what says which belong together."""

    part: Part
    outputs: list[Node]
    flags: list[Node]


def pairs_apart(run: Rehearsing) -> Iterator[Answer]:
    """Pairs of the same class are pushed apart, or those of two classes together."""
    for found in _compared(run):
        if len(found.outputs) != 2 or len(found.flags) != 1 or found.part.node.place is None:
            continue
        if _wrong(found, _pair_scene):
            text = "pairs that are of one kind are pushed apart by this, or those of two kinds pulled together"
            yield Answer(found.part.node.place, text, _proof(found))
            return


def triplets_turned(run: Rehearsing) -> Iterator[Answer]:
    """The one of the same group is pushed away from the anchor, and the other one pulled to it."""
    for found in _compared(run):
        if len(found.outputs) == 3 and not found.flags and found.part.node.place is not None:
            roles = _roles(found.outputs)
            if roles is not None and _wrong(found._replace(outputs=roles), _triplet_scene):
                yield Answer(found.part.node.place, _TURNED, _proof(found))
                return
    for loss in trained(run):
        if loss.op == "triplet_margin_loss" and loss.place is not None:
            sides = [given(loss, name, n) for n, name in enumerate(("anchor", "positive", "negative"))]
            outputs = [o for s in sides if (o := _output(s)) is not None]
            roles = _roles(outputs) if len(outputs) == 3 else None
            if roles is not None and roles[0] is outputs[0] and roles[1] is outputs[2]:
                yield Answer(loss.place, _TURNED)
                return


_TURNED = "the two of one group are pushed apart by this, and the one of another group is pulled to them"


def _compared(run: Rehearsing) -> list[Compared]:
    if "known pairs" not in run.memo:
        made: dict[int, Compared] = {}
        for event in backwards(run):
            if isinstance(event.subject, Node):
                for part in summands(event.subject, level=len(event.subject.stack)):
                    found = _of(part)
                    if found is not None:
                        made.setdefault(id(part.node), found)
        run.memo["known pairs"] = list(made.values())
    known: list[Compared] = run.memo["known pairs"]
    return known


def _of(part: Part) -> Compared | None:
    outputs: list[Node] = []
    flags: list[Node] = []

    def through(node: Node) -> bool:
        return not _last(node) and not (node.op in ("eq", "ne") and not node.grad)

    for count, node in enumerate(ancestors(part.node, through=through)):
        if count > MOST or (node.op == "param" and node.shape.dims):
            return None
        if _last(node):
            outputs.append(node)
        elif node.op in ("eq", "ne") and not node.grad:
            flags.append(node)
    alike = len({_layer(o) for o in outputs}) == 1 and all(o.grad for o in outputs)
    flat = all(not f.shape.open and len(f.shape.dims) == 1 for f in flags)
    compared = all(_of_data(f) for f in flags)
    return Compared(part, outputs, flags) if alike and flat and compared else None


def _last(node: Node) -> bool:
    """What a network gives: the output of a layer, or that of length one."""
    return output_of_layer(node) or (node.op == "normalize" and node.grad)


def _layer(output: Node) -> int:
    """The layer that an output comes from (``id``): one network gave all of them."""
    return next((id(n.owner) for n in ancestors(output) if output_of_layer(n)), 0)


def _of_data(flag: Node) -> bool:
    """True where values of one array are compared: what the two samples of a pair are of."""
    roots = []
    for side in flag.inputs[:2]:
        at: Value = side
        while isinstance(at, Node) and at.op in STRUCTURE | {"batch", "element"} and at.inputs:
            at = at.inputs[0]
        roots.append(at)
    return len(roots) == 2 and isinstance(roots[0], Node) and roots[0] is roots[1]


def _output(value: Value) -> Node | None:
    while isinstance(value, Node) and not _last(value) and value.op in STRUCTURE and value.inputs:
        value = value.inputs[0]
    return value if isinstance(value, Node) and _last(value) else None


def _roles(outputs: list[Node]) -> list[Node] | None:
    """Anchor, the one of its group, and the third; None unless just two are of one group."""
    groups = [_group(o) for o in outputs]
    if None in groups or len(set(groups)) != 2:
        return None
    alone = next(n for n, g in enumerate(groups) if groups.count(g) == 1)
    if alone == 0:
        return None  # the first two are no anchor and positive: whichever is meant, it is not told
    both = [n for n in range(3) if n != alone]
    return [outputs[both[0]], outputs[both[1]], outputs[alone]]


def _group(output: Node) -> object:
    """``x[g, i]``: the array and the number of the group that the input of a network was drawn from."""
    for node in ancestors(output, through=lambda n: n.grad or n.op in STRUCTURE | {"batch"}):
        if node.grad or node.op == "param":
            continue
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        if isinstance(index, tuple) and len(index) == 2 and all(isinstance(i, Node) for i in index):
            return id(node.inputs[0]), key_of(index[0])
    return None


# ---------------------------------------------------------------------- working it out
def _wrong(found: Compared, scene: object) -> bool:
    try:
        gaps = [_gap(found, draw, scene is _pair_scene) for draw in range(DRAWS)]
    except (Unknown, ValueError):
        return False
    return all(gap < 0 for gap in gaps)


def _gap(found: Compared, draw: int, pairs: bool) -> float:
    """By how much more it costs what should not be."""
    good, bad = (_pair_scene if pairs else _triplet_scene)(found, draw)
    values = []
    for arrays in (good, bad):
        bench = Bench(leaf=leaf, seed=draw)
        for node in (*found.outputs, *found.flags):
            bench.set(node, arrays[id(node)])
        values.append(bench.number(found.part.node) * found.part.sign)
    if not all(math.isfinite(v) for v in values):
        raise Unknown
    gap = values[1] - values[0]
    return gap if abs(gap) > CLEAR * max(1.0, abs(values[0])) else 0.0


def _points(found: Compared, draw: int, near: Array) -> list[Array]:
    """A first output, and a second one that lies near it in some rows and far off in the others."""
    import numpy as np

    random = np.random.default_rng(draw)
    rows, width = sizes(found.outputs[0])
    if any(sizes(o) != (rows, width) for o in found.outputs):
        raise Unknown
    first = random.standard_normal((rows, width))
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    away = random.standard_normal((rows, width))
    away *= WIDE / np.linalg.norm(away, axis=-1, keepdims=True)
    unit = any(o.op == "normalize" for o in found.outputs)
    far = -first if unit else first + away
    noise = 0.02 * random.standard_normal((rows, width))
    return [first, np.where(near[:, None], first + noise, far)]


def _pair_scene(found: Compared, draw: int) -> tuple[dict[int, Array], dict[int, Array]]:
    import numpy as np

    rows = sizes(found.outputs[0])[0]
    same = np.arange(rows) % 2 == 0
    one, other = found.outputs
    flag = found.flags[0]
    told = {id(flag): same if flag.op == "eq" else ~same}
    good, bad = _points(found, draw, same), _points(found, draw, ~same)
    return (
        {id(one): good[0], id(other): good[1], **told},
        {id(one): bad[0], id(other): bad[1], **told},
    )


def _triplet_scene(found: Compared, draw: int) -> tuple[dict[int, Array], dict[int, Array]]:
    import numpy as np

    rows = sizes(found.outputs[0])[0]
    anchor, positive, negative = found.outputs
    first, near = _points(found, draw, np.ones(rows, dtype=bool))
    _, far = _points(found, draw, np.zeros(rows, dtype=bool))
    good = {id(anchor): first, id(positive): near, id(negative): far}
    return good, {**good, id(positive): far, id(negative): near}


def _proof(found: Compared) -> tuple[Place, ...]:
    places = [n.place for n in (*found.flags, *found.outputs[:1]) if n.place is not None]
    return tuple(places)


__all__ = ["pairs_apart", "triplets_turned"]
