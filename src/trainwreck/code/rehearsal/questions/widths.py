"""How wide are batches of sequences cut? By the shortest or the usual length, all that is longer loses its end."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value, candidates
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer

SHORT = {"min": "the shortest", "amin": "the shortest", "mean": "the mean", "median": "the median"}
"""What picks a length of several below the longest one."""
LENGTHS = frozenset(["len", "size", "numel"])
CONVERTS = frozenset(["int", "round", "item", "tensor", "array", "asarray", "astype", "tolist"])


def cut_to_the_shortest(run: Rehearsing) -> Iterator[Answer]:
    """Token ids of a batch that are cut at the least of their lengths, before an embedding takes them."""
    told: set[int] = set()
    looked_up = [n for n in run.nodes if n.op == "embedding" and n.inputs]
    for node in run.nodes if looked_up else ():
        if node.op not in SHORT or node.place is None or id(node.place[0]) in told or not _of_lengths(node):
            continue
        cuts = [n for n in run.nodes if n.serial > node.serial and _cut_at(n, node)]
        if any(id(cut) in _behind(found) for cut in cuts for found in looked_up):
            told.add(id(node.place[0]))
            text = f"sequences are cut at {SHORT[node.op]} of their lengths: the end of the longer ones never arrives"
            yield Answer(node.place, text, tuple(c.place for c in cuts[:1] if c.place is not None))


def _behind(embedding: Node) -> set[int]:
    return {id(n) for n in near(embedding.inputs[0], 400)}


def _of_lengths(node: Node) -> bool:
    """True where only lengths of samples are compared, each asked for at the same place."""
    lengths: list[Node] = []
    queue = [n for item in node.inputs for n in parts(item)]
    while queue and len(lengths) < 50:
        at = queue.pop()
        if at.op in LENGTHS or (at.op == "attribute" and at.name == "shape"):
            lengths.append(at)
        elif at.op in CONVERTS or at.op == "getitem":
            queue += [n for item in at.inputs[:1] for n in parts(item)]
        else:
            return False
    places = {id(n.place[0]) for n in lengths if n.place is not None}
    plain = not any(isinstance(i, int | float) for i in node.inputs)
    return plain and len(places) == 1 and len(lengths) > 1


def _cut_at(node: Node, length: Node) -> bool:
    """True for ``x[:length]`` and ``x[:, :length]``."""
    if node.op != "getitem" or len(node.inputs) < 2:
        return False
    index = node.inputs[1] if isinstance(node.inputs[1], tuple) else (node.inputs[1],)
    return any(_ends_at(part, length) for part in index)


def _ends_at(part: Value, length: Node) -> bool:
    if not isinstance(part, Obj) or part.kind != "builtins.slice" or part.args[0] not in (None, 0):
        return False
    end = part.args[1]
    while isinstance(end, Node) and end.op in CONVERTS and end.inputs:
        end = end.inputs[0]
    return any(c is length for c in candidates(end))
