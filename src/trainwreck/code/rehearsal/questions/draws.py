"""Are the inputs of an example and its target drawn together?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.mixing import unmixed_inputs
from trainwreck.code.rehearsal.questions.order import COMPARES, paired
from trainwreck.code.rehearsal.questions.paths import RANDOM, Path, meets, paths
from trainwreck.code.rehearsal.questions.places import parting
from trainwreck.code.rehearsal.questions.redrawn import generator_of
from trainwreck.code.rehearsal.questions.roles import backwards, learns

DRAWS = RANDOM | {"randrange", "choices"}
FOUND = frozenset("min max argmin argmax topk argsort sort nonzero flatnonzero searchsorted".split())
"""What finds places by the values there: such numbers are drawn only where these values are random numbers."""
NEAREST = 60
"""Values behind an index that are looked at."""


def drawn_apart(run: Rehearsing) -> Iterator[Answer]:
    """Inputs are picked by one random draw and their targets by another, from one array or from a pair.

    Targets that a network computes (the other view of a self-supervised pair) are another matter."""
    for event in backwards(run):
        for meeting, inside, outside in meets(event.subject):
            if meeting.op not in COMPARES and not meeting.op.endswith("_loss"):
                continue
            targets = [p for node in outside if not learns(node) for p in paths(run, node) if p.steps]
            inputs = [p for node in inside for p in paths(run, node) if p.steps]
            pair = _apart(inputs, targets)
            if pair is None or _replayed(run, *pair) or next(unmixed_inputs(run), None) is not None:
                continue
            place = parting(pair[1], pair[0]) or pair[1].place
            if place is not None:
                other = parting(pair[0], pair[1]) or pair[0].place
                text = "the target is picked by another random draw than the input that it is compared with"
                yield Answer(place, text, tuple(p for p in (other, meeting.place) if p is not None))
                return


def _apart(inputs: list[Path], targets: list[Path]) -> tuple[Node, Node] | None:
    """A draw behind the inputs and one behind the targets, where no way of the two shares any."""
    found: tuple[Node, Node] | None = None
    drawn = [(p, draws) for p in inputs if (draws := _draws(p))]
    for target in targets:
        theirs = _draws(target)
        if not theirs:
            return None
        for one, mine in drawn:
            if mine.keys() & theirs.keys():
                return None
            if (one.root is target.root and not _single(one)) or paired(one, target):
                found = found or (next(iter(mine.values())), next(iter(theirs.values())))
    return found if len(drawn) == len(inputs) else None


def _single(path: Path) -> bool:
    """True from one number that was drawn: what is painted by it and what tells it are of one example."""
    number = len(path.nodes) > 1 and path.nodes[1].op in ("int", "float", "item", "bool")
    return path.root.op in DRAWS and (number or path.root.shape.total == 1)


def _replayed(run: Rehearsing, one: Node, other: Node) -> bool:
    """True for the same numbers once more: two generators of one seed, at the same place of their sequence."""
    makers = [generator_of(one), generator_of(other)]
    if makers[0] is None or makers[1] is None or makers[0] is makers[1] or one.op != other.op:
        return False
    seeds = [[i for i in (m.inputs if isinstance(m, Node) else getattr(m, "args", ())) if not isinstance(i, Obj)]
             for m in makers]  # fmt: skip
    same = len(seeds[0]) == len(seeds[1]) and all(a is b or (not isinstance(a, Node) and a == b)
                                                  for a, b in zip(*seeds, strict=True))  # fmt: skip
    before = [sum(n.op in DRAWS and n.serial < d.serial and generator_of(n) is m for n in run.nodes)
              for m, d in zip(makers, (one, other), strict=True)]  # fmt: skip
    return bool(seeds[0]) and same and before[0] == before[1]


def _draws(path: Path) -> dict[int, Node]:
    """The random numbers by which the elements of a way are picked last, by ``id``."""
    put = {_spot(n.place) for n in path.nodes if n.op == "setitem"}
    for step in reversed(path.steps):
        if step.place is not None and _spot(step.place) in put:
            continue  # ``x[i] += 1`` picks nothing: the whole goes on
        ends = (step.index, *getattr(step.index, "args", ()))
        behind = [n for end in ends for n in islice(ancestors(end, through=_no_draw), NEAREST)]
        if found := {id(n): n for n in behind if n.op in DRAWS}:
            return found
    return {}


def _spot(place: Place | None) -> tuple[int, int] | None:
    """The same for ``x[i]`` that is read and ``x[i]`` that is written in ``x[i] += 1``."""
    return (getattr(place[0], "lineno", 0), getattr(place[0], "col_offset", 0)) if place is not None else None


def _no_draw(node: Node) -> bool:
    return node.op not in DRAWS and (node.op not in FOUND or any(n.op in DRAWS for n in near(node, 4)))
