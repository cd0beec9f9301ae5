"""Samples of a data set that are drawn with a generator whose seed is the sample's number: alike in every epoch."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import trips
from trainwreck.code.rehearsal.questions.redrawn import generator_of
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.streams import DRAWS

EPOCHS = 5
"""From so many on it matters that each shows the same: in a short run a sample is seen a few times anyway."""
LOOPS = 2
SAMPLE = frozenset(["index", "add", "mul", "xor", "mod", "int", "sub", "floor_divide"])


def same_each_epoch(run: Rehearsing) -> Iterator[Answer]:
    """The training repeats its loader many times, and each sample is distorted (or made up) in the same way each time.

    Said of what is stored and distorted on the way (augmented once and for all); of samples made up as a whole only
    where the loader does not even shuffle, and the evaluation draws fresh ones in the same way: a stream that
    repeats."""
    for event in backwards(run):
        if len(event.turns) < LOOPS or not event.turns[-1].generic:
            continue
        epochs = [trips(run, t) for t in event.turns[:-1]]
        if not all(e is not None for e in epochs) or max(e or 0 for e in epochs) < EPOCHS:
            continue
        items = [n for n in ancestors(event.subject, through=lambda n: n.op != "batch") if n.op == "batch"]
        fed = [n for n in items if isinstance(n.owner, Obj) and n.owner.name == "DataLoader"]
        seen = {id(n): n for item in fed for n in ancestors(item)}
        draws = [n for n in seen.values() if n.op in DRAWS]
        own = [n for n in draws if _numbered(generator_of(n))]
        others = [n for n in draws if n not in own and any(i.op == "index" for i in ancestors(n.inputs))]
        if not own or others:
            continue
        maker = generator_of(own[0])
        if not isinstance(maker, Node) or maker.place is None or not isinstance(fed[0].owner, Obj):
            continue
        stored = [n for n in seen.values() if _stored(n) and not any(d in own for d in ancestors(n))]
        distorted = [i for i in fed if any(n in stored for n in ancestors(i)) and any(n in own for n in ancestors(i))]
        plain = [i for i in fed if i not in distorted]
        if stored:
            # the clean sample itself is the target: noise that stays makes another data set, which may be meant
            bases = [{id(n.inputs[0]) for n in ancestors(tuple(side)) if n in stored} for side in (distorted, plain)]
            clean = bool(bases[0] & bases[1])
            drawn = any(n in own for n in ancestors(tuple(plain)))  # what is to be told was drawn too: a data set
            if not distorted or not plain or clean or drawn:
                continue
            text = (
                "the generator starts at the sample's number: each sample is distorted in the same way in every epoch"
            )
        else:
            if fed[0].owner.get("shuffle", 2) or fed[0].owner.get("sampler", 3) or not _drawn_afresh(run, own, seen):
                continue
            text = "the generator starts at the sample's number: every epoch repeats the very samples of the first one"
        yield Answer(maker.place, text, tuple(p for p in (own[0].place, event.place) if p is not None))
        return


def _numbered(maker: Value) -> bool:
    """True for a generator whose seed is made of the sample's number and nothing else that changes."""
    if not isinstance(maker, Node):
        return False
    seen = [n for i in maker.inputs for n in ancestors(i)]
    return any(n.op == "index" for n in seen) and all(n.op in SAMPLE for n in seen)


def _stored(node: Node) -> bool:
    """True for the row of an array that stands under the sample's number."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    first = index[0] if isinstance(index, tuple) and index else index
    return isinstance(first, Node) and first.op == "index" and any(True for _ in parts(node.inputs[0]))


def _drawn_afresh(run: Rehearsing, own: list[Node], seen: dict[int, Node]) -> bool:
    """True where the same lines draw with another generator too, outside of the data set."""
    lines = {id(n.place[0]) for n in own if n.place is not None}
    return any(
        n.op in DRAWS and n.place is not None and id(n.place[0]) in lines and id(n) not in seen
        and not _numbered(generator_of(n))
        for n in run.nodes
    )  # fmt: skip


__all__ = ["same_each_epoch"]
