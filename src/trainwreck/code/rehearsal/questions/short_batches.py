"""The last batch of an epoch, which is smaller: does it meet something that has the size of a full one?

Said only where the number of samples is known and the batch size doesn't divide it, and nothing drops the rest."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import NamedTuple

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.library.data import LOADERS
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import length, number
from trainwreck.code.rehearsal.questions.roles import trained
from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis

RECURRENT = frozenset(["lstm", "gru", "rnn"])
CELLS = frozenset(["lstmcell", "grucell", "rnncell"])
ELEMENTWISE = frozenset(
    """add sub mul div maximum minimum where lerp binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss
    smooth_l1_loss huber_loss""".split()
)
"""What refuses two sizes along one axis that differ, if neither is 1."""
TARGETS = frozenset(["cross_entropy", "nll_loss"])
MADE = frozenset("zeros ones full empty rand randn eye arange tensor expand repeat tile uniform normal".split())
PASSES = frozenset(
    "to float cuda double half mul sub neg requires_grad_ unsqueeze long detach detach_ clone scatter scatter_".split()
)
SAMPLERS = ("sampler", "batch_sampler", "collate_fn")


class Short(NamedTuple):
    """Batches of ``size`` samples, the last of which has ``rest``."""

    size: int
    rest: int


class Meeting(NamedTuple):
    """A value with its samples along an axis, and what must have as many elements along its ``axis``."""

    value: Node
    made: Node
    axis: int


def last_is_smaller(run: Rehearsing) -> Iterator[Answer]:
    """A state, a noise or a row of labels of the configured batch size beside a batch that may be smaller."""
    known: dict[int, Short | None] = {}
    told: set[int] = set()
    for node in run.nodes:
        for value, made, axis in _meetings(run, node):
            size, new = _fixed(value, made, axis)
            if size is None or new is None or new.place is None or id(new.place[0]) in told:
                continue
            batch = _batch(value)
            if batch is None or not _goes_round(node, batch):
                continue
            if id(batch) not in known:
                known[id(batch)] = _short(run, batch)
            short = known[id(batch)]
            if short is None or short.size != size or (short.rest == 1 and node.op in ELEMENTWISE):
                continue
            place = _given_at(new.place, new, node)
            told.add(id(new.place[0]))
            text = f"this has the size of a full batch ({size}), and the last batch has {short.rest} samples"
            yield Answer(place, text, (node.place,) if node.place is not None else ())


def _meetings(run: Rehearsing, node: Node) -> Iterator[Meeting]:
    first = node.inputs[0] if node.inputs else None
    if node.op in RECURRENT | CELLS and isinstance(first, Node):
        given = node.inputs[1] if len(node.inputs) > 1 else node.options.get("hx")
        for state in _listed(given) if isinstance(given, tuple | Items) else (given,):
            if isinstance(state, Node) and state.op != "param" and sample_axis(run, first) is not None:
                yield Meeting(first, state, -2)
    elif node.op in ELEMENTWISE or node.op in ("cat", "concat", "concatenate"):
        joined = node.op not in ELEMENTWISE
        along = node.options.get("dim", node.options.get("axis", node.inputs[1] if len(node.inputs) > 1 else 0))
        if joined and along == 0:
            return
        sides = [i for i in (_listed(first) if joined else node.inputs[:3]) if isinstance(i, Node)]
        for one, other in ((a, b) for a in sides for b in sides if a is not b):
            alike = not one.shape.open and not other.shape.open and len(one.shape.dims) == len(other.shape.dims) > 0
            if alike and one.shape.dims[0] is None and sample_axis(run, one) == 0:
                yield Meeting(one, other, 0)
    elif node.op in ("view", "reshape") and isinstance(first, Node) and sample_axis(run, first) == 0:
        if _refuses(node, first):
            yield Meeting(first, node, 0)
    elif node.op == "getitem" and isinstance(first, Node) and isinstance(node.inputs[1], tuple):
        rows, *rest = node.inputs[1]
        for other in (r for r in rest[:1] if isinstance(rows, Node) and isinstance(r, Node)):
            if sample_axis(run, other) == 0 and len(other.shape.dims) == len(rows.shape.dims) == 1:
                yield Meeting(other, rows, 0)
    elif node.op in TARGETS and isinstance(first, Node) and sample_axis(run, first) == 0:
        target = node.inputs[1] if len(node.inputs) > 1 else None
        if isinstance(target, Node):
            yield Meeting(first, target, 0)


def _listed(value: Value) -> list[Value]:
    return list(value) if isinstance(value, tuple) else list(value.items) if isinstance(value, Items) else []


def _refuses(node: Node, first: Node) -> bool:
    """True for ``x.view(64, 10)`` of a batch: the rows are written, and as many columns as a sample has elements."""
    sizes = node.inputs[1] if len(node.inputs) == 2 and isinstance(node.inputs[1], tuple) else node.inputs[1:]
    if first.shape.open or not all(isinstance(s, int) and s > 0 for s in sizes) or len(sizes) < 2:
        return False
    own = first.shape.dims[1:]
    return first.shape.dims[0] is None and None not in own and math.prod(sizes[1:]) == math.prod(d or 1 for d in own)


def _fixed(value: Node, made: Node, axis: int) -> tuple[int | None, Node | None]:
    """The number that is written for the samples in a new tensor, and that tensor."""
    at: Value = made
    if made.inputs and made.inputs[0] is value:  # the batch itself, in a written shape
        return (int(made.shape.dims[0] or 0) or None), made
    while isinstance(at, Node) and at.op in PASSES:
        at = at.inputs[0] if at.inputs else None
    if not isinstance(at, Node) or at.op not in MADE or made.shape.open or len(made.shape.dims) < 1 + (axis < 0):
        return None, None
    size = made.shape.dims[axis]
    if not isinstance(size, int) or size < 2 or any(n.op in ("batch", "size", "len") for n in ancestors(at)):
        return None, None
    return size, at


def _given_at(place: Place, made: Node, node: Node) -> Place:
    """Where the size is given: the call of a function that makes the tensor, if that is told how many samples, and
    the loop over the batches stands elsewhere."""
    if not made.stack or any(t.scope is place[1] for t in node.turns):
        return place
    names = {n.id for n in ast.walk(place[0]) if isinstance(n, ast.Name)}
    inner = next((p for p in reversed(made.stack) if p[1] is not place[1]), place)
    return inner if names & (set(place[1].params) - {"self"}) else place


def _batch(value: Node) -> Node | None:
    """What a value has its samples from: the batch of a loader, or a piece of an order that is cut into equal ones."""
    found = [n for n in ancestors(value, through=lambda n: not _begins(n)) if _begins(n) and n.op not in SIZED]
    owners = {id(n.owner) if n.op == "batch" else id(n.inputs[0]) for n in found}
    return found[0] if len(owners) == 1 else None


SIZED = frozenset(["param", "size"])


def _begins(node: Node) -> bool:
    return node.op in ("batch", *SIZED) or _piece(node) is not None


def _piece(node: Node) -> tuple[Value, Value] | None:
    """The order that a piece is cut from, and how long all pieces but the last are."""
    base = node.inputs[0] if node.inputs else None
    if node.op == "element" and isinstance(base, Node) and base.op == "split" and len(base.inputs) > 1:
        return base.inputs[0], base.inputs[1]
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    if not isinstance(index, Obj) or index.kind != "builtins.slice" or not node.turns or not node.turns[-1].generic:
        return None
    low, high, step = index.args
    ends = isinstance(high, Node) and high.op == "add" and high.inputs[:1] == (low,) and len(high.inputs) > 1
    return (base, high.inputs[1]) if isinstance(low, Node) and ends and step is None else None


def _goes_round(node: Node, batch: Node) -> bool:
    """False where the loop over batches may be left before its last one, or skips some."""
    turns = [t for t in node.turns if isinstance(t.node, ast.For | ast.While)]
    over = [t for t in turns if batch.op == "element" and t.over is batch.inputs[0]]
    loops = over or [t for t in turns if t in batch.turns]
    inner = list(ast.walk(loops[-1].node)) if loops else []
    return bool(loops) and not any(isinstance(n, ast.Break | ast.Continue | ast.Try) for n in inner)


def _short(run: Rehearsing, batch: Node) -> Short | None:
    cut = _piece(batch) if batch.op != "batch" else None
    if cut is not None:
        count, size = length(run, cut[0]), number(run, cut[1])
        over = batch.turns[-1].over if batch.op == "getitem" else None
        if isinstance(over, Items) and over.kind == "range" and count is not None and size:
            count = count if over.length == -(-count // size) else None
    else:
        loader = batch.owner
        if not isinstance(loader, Obj) or loader.name not in LOADERS or loader.get("drop_last", 8, False) is not False:
            return None
        if any(loader.options.get(k) is not None for k in SAMPLERS):
            return None
        size, count = number(run, loader.get("batch_size", 1, 1)), length(run, loader.get("dataset", 0))
    if size is None or count is None or size != int(size) or count != int(count) or size < 2:
        return None
    rest = int(count) % int(size)
    return Short(int(size), rest) if rest else None


def single(run: Rehearsing) -> Iterator[Answer]:
    """Batch normalisation in training of one value for each channel: the last batch has one sample, or each has."""
    told: set[int] = set()
    learning = {id(e.subject) for e in run.tape if e.name == "forward" and e.state.get("training") is True}
    for node in trained(run):
        first = node.inputs[0] if node.inputs else None
        layer = node.owner
        if not node.op.startswith(("batch_norm", "batchnorm")) or not isinstance(first, Node) or first.shape.open:
            continue
        if layer is None or id(layer) not in learning or any(d != 1 for d in first.shape.dims[2:]):
            continue
        if first.shape.dims[:1] == (1,) and node.place is not None and id(node.place[0]) not in told:
            told.add(id(node.place[0]))
            yield Answer(layer.place or node.place, "one value for each channel arrives here: it has no variance")
            continue
        batch = _batch(first)
        short = _short(run, batch) if batch is not None and _goes_round(node, batch) else None
        made = batch.owner if batch is not None else None
        place = made.place if made is not None else batch.place if batch is not None else None
        if short is not None and short.rest == 1 and place is not None and id(place[0]) not in told:
            told.add(id(place[0]))
            text = (
                f"the last of these batches has one sample, and {layer.name} fails on a single value for each channel"
            )
            yield Answer(place, text, (layer.place,) if layer.place is not None else ())


def leaves_one(run: Rehearsing, call: ast.AST) -> bool:
    """True where this call gets the last batch of a loader, in which a single sample is left."""
    for node in run.nodes:
        if node.place is not None and node.place[0] is call:
            batch = _batch(node)
            short = _short(run, batch) if batch is not None and _goes_round(node, batch) else None
            if short is not None and short.rest == 1:
                return True
    return False


__all__ = ["last_is_smaller", "leaves_one", "single"]
