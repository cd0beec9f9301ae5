"""Targets that a network (a teacher, the network itself) makes for another one: along which axis are they made?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.roles import PROBABILITIES, RAW, core
from trainwreck.code.rehearsal.questions.scores import by_sample

CHOOSES = frozenset(["argmax", "max"])
SHARES = frozenset(["softmax", "log_softmax"])


def among_samples(run: Rehearsing) -> Iterator[Answer]:
    """The shares or the best class of outputs that teach are taken over the samples of the batch."""
    feeds = feeding(run)
    for node in run.nodes:
        if node.op not in CHOOSES | SHARES or node.grad or node.place is None or id(node) not in feeds:
            continue
        scores = node.inputs[0] if node.inputs else None
        if along(node) != 0 or not isinstance(scores, Node) or scores.shape.open or len(scores.shape.dims) != 2:
            continue
        made = core(scores)
        if made and all(n.op in RAW or n.op in PROBABILITIES for n in made) and _of_samples(scores):
            what = "the best" if node.op in CHOOSES else "shares"
            yield Answer(node.place, f"{what} of the samples of a batch for each class, not of the classes of a sample")
            return


def _of_samples(scores: Node) -> bool:
    made = core(scores)
    inner = [n.inputs[0] if n.op in PROBABILITIES and n.inputs else n for n in made]
    return all(by_sample(i) for i in inner)


__all__ = ["among_samples"]
