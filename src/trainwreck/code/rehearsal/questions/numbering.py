"""Categories that are numbered by what occurs in data: is the numbering of the training also that of the evaluation?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import NUMBERING, Node, Place, Table
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained

TABLES = frozenset(["Embedding", "EmbeddingBag"])
LAYERS = frozenset(["linear", "embedding", "embeddingbag", "embedding_bag", "conv1d", "conv2d", "param"])


class Numbers(NamedTuple):
    """A numbering: which one, where it was made, by which calls, and in what the numbers were looked up."""

    key: int
    place: Place
    stack: tuple[Place, ...]
    used: Place | None


def counted_anew(run: Rehearsing) -> Iterator[Answer]:
    """An embedding is asked, where nothing is trained, about numbers that were given anew."""
    learned = {id(n) for n in trained(run)}
    uses = [n for n in run.nodes if n.owner is not None and n.owner.name in TABLES and n.inputs and n.op != "param"]
    for owner in {id(n.owner): n.owner for n in uses}.values():
        mine = [n for n in uses if n.owner is owner]
        first = [f for n in mine if id(n) in learned for f in _numberings(n)]
        other = [f for n in mine if id(n) not in learned and not n.grad for f in _numberings(n)]
        if not first or not other or {f.key for f in first} & {f.key for f in other}:
            continue
        found, before = other[-1], first[0]
        same = found.place[0] is before.place[0]
        shared = same and found.used is not None and found.used[1] is found.place[1]
        place = found.stack[-1] if same and found.stack and not shared else found.place
        yield Answer(place, "the categories are numbered anew here: the same one has another number than in training",
                     (before.place,))  # fmt: skip
        return


def _numberings(asked: Node) -> Iterator[Numbers]:
    """The numberings that the numbers given to an embedding come from."""
    given = asked.inputs[0]
    for node in ancestors(given, through=lambda n: n.op not in LAYERS and n.op != "lookup"):
        table = node.attributes.get(NUMBERING)
        if isinstance(table, Table) and table.numbered is not None:
            yield Numbers(id(table), table.numbered, table.stack, node.place)
        elif node.op in ("part", "getitem") and node.inputs[1:] == (1,) and isinstance(node.inputs[0], Node):
            unique = node.inputs[0]
            if unique.op == "unique" and unique.options.get("return_inverse") is True and unique.place is not None:
                yield Numbers(id(unique), unique.place, unique.stack, node.place)


__all__ = ["counted_anew"]
