"""Which way up: along which axis of a picture a coordinate runs, in what a network sees and in what it is to draw.

A picture that the program draws itself shows it: ``(xx - x) ** 2`` with ``xx`` that grows along the last axis, or
``image[y, x] = 1``, tie the number ``x`` to the last axis. Where input and target are drawn from the same numbers and
each number runs along the one axis here and along the other one there, the target is the transpose of what is seen.
Convolutions have no way to turn it back. What is not followed ties nothing, and then nothing is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.coordinates import Root
from trainwreck.code.rehearsal.questions.places import parting
from trainwreck.code.rehearsal.questions.roles import given, learns, trained, unknown
from trainwreck.code.rehearsal.questions.ties import Info, Ties
from trainwreck.code.rehearsal.questions.views import data_inputs

DENSE = frozenset(
    """cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss
    huber_loss sub kl_div""".split()
)
TURNS = frozenset(
    """linear matmul bmm mm einsum scaled_dot_product_attention multiheadattention transpose permute swapaxes movedim t
    T mT rot90 grid_sample embedding lstm gru rnn view reshape unflatten""".split()
)
"""What can bring one axis in the place of the other one inside a network."""
ACROSS, DOWN = -1, -2
Found = tuple[Place, Place | None]


def transposed(run: Rehearsing) -> Iterator[Answer]:
    """A dense target that is drawn from the same numbers as the input, with its two axes exchanged."""
    ties = Ties()
    told: set[int] = set()
    for node in trained(run):
        if node.op not in DENSE:
            continue
        output, target = given(node, "input", 0), given(node, "target", 1)
        if isinstance(output, Node) and isinstance(target, Node) and not output.grad:
            output, target = target, output
        if not isinstance(output, Node) or not isinstance(target, Node) or target.grad or not output.grad:
            continue
        if not _plane(target) or not _plane(output) or learns(target) or _turned(output):
            continue
        drawn, plane = ties.info(target), target.shape.dims[-2:]
        seen = [ties.info(image) for image in data_inputs(output) if _plane(image)]
        if any(_alike(one, drawn) for one in seen):
            continue  # another input shows it the right way up
        found = next((f for one in seen if (f := _exchanged(one, drawn, plane)) is not None), None)
        if found is not None and id(found[0][0]) not in told:
            told.add(id(found[0][0]))
            text = "what runs across the input runs down the target: it is the transpose of what the network sees"
            yield Answer(found[0], text, (found[1],) if found[1] is not None else ())


def _plane(value: Node) -> bool:
    return not value.shape.open and len(value.shape.dims) >= 2 and 1 not in value.shape.dims[-2:]


def _turned(output: Node) -> bool:
    """True where layers may exchange the axes, or something is not understood."""
    return any(n.grad and (n.op in TURNS or unknown(n)) for n in ancestors(output, through=lambda n: n.grad))


def _exchanged(seen: Info, drawn: Info, plane: tuple[int | None, ...]) -> Found | None:
    """Where the target ties numbers to an axis that the input ties to the other one; None where any is alike."""
    mine, theirs = _axes(seen), _axes(drawn)
    shared = [r for r in mine if r in theirs and (not isinstance(r[1], tuple) or r[1][:2] == plane)]
    ways = {(mine[r], theirs[r]) for r in shared}
    if ways != {(ACROSS, DOWN), (DOWN, ACROSS)}:
        return None
    grids = [g for r in shared if (g := drawn.grids.get((r, theirs[r]))) is not None and _misnamed(g, theirs[r])]
    pairs = [(drawn.links[r, theirs[r]], seen.links[r, mine[r]]) for r in shared]
    pairs = [(made, twin) for made, twin in pairs if made.place is not None]
    if not pairs:
        return None
    made, twin = min(pairs, key=lambda pair: _line(pair[0]))
    place = grids[0].place if grids else made.place
    at = made.place[0] if made.place is not None else None
    same = next((s for s in seen.links.values() if s.place is not None and s.place[0] is at), None)
    if same is not None:
        place = parting(made, same)  # one function draws both
    return (place, twin.place) if place is not None else None


def _alike(seen: Info, drawn: Info) -> bool:
    """True where any number runs along the same axis in both."""
    mine, theirs = _axes(seen), _axes(drawn)
    return any(theirs.get(root) == axis for root, axis in mine.items())


def _axes(info: Info) -> dict[Root, int]:
    """The numbers that run along one of the two axes alone."""
    found: dict[Root, set[int]] = {}
    for root, axis in info.links:
        found.setdefault(root, set()).add(axis)
    return {root: next(iter(axes)) for root, axes in found.items() if len(axes) == 1 and axes <= {ACROSS, DOWN}}


def _line(node: Node) -> int:
    return int(getattr(node.place[0], "lineno", 0)) if node.place is not None else 0


def _misnamed(grid: Node, axis: int) -> bool:
    """True where positions that grow downwards have a name for what grows across, or the other way round."""
    if grid.place is None or len(grid.inputs) < 2 or not isinstance(grid.inputs[1], int):
        return False
    named = grid.place[0]
    each = named.elts if isinstance(named, ast.Tuple | ast.List) else []
    number = grid.inputs[1]
    name = written(each[number]).lower() if 0 <= number < len(each) else ""
    words = (("x", "col"), ("y", "row")) if axis == DOWN else (("y", "row"), ("x", "col"))
    return any(w in name for w in words[0]) and not any(w in name for w in words[1])
