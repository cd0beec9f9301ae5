"""Networks that are given all rows at once (the nodes of a graph) and are judged by some of their outputs.

Which rows a loss learns from, and which an evaluation judges, is said by what is picked of the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import Step, selected
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.spans_apart import share_rows
from trainwreck.core.row import Row

SHAPED = frozenset("squeeze view reshape softmax log_softmax sigmoid argmax max part element exp detach cpu".split())


class Pick(Row):
    """Rows of what a module gave."""

    node: Node
    steps: tuple[Step, ...]

    @property
    def keys(self) -> tuple[object, ...]:
        return tuple(step.key for step in self.steps)


def judged_again(run: Rehearsing) -> Iterator[Answer]:
    """Outputs that are judged, and picked by bounds which share rows with those that the loss was about."""
    learned = [p for e in backwards(run) for p in _picks(run, ancestors(e.subject), learning=True)]
    for judged in _picks(run, run.nodes, learning=False) if learned else ():
        for one in learned:
            place = _later(one, judged)
            if place is not None and share_rows(one.keys, judged.keys):
                text = "these rows are held out for the evaluation, and the training uses them too"
                other = one.node.place if place is not one.node.place else judged.node.place
                yield Answer(place, text, (other,) if other is not None else ())
                return


def _later(one: Pick, other: Pick) -> Place | None:
    """Where the second of two parts is cut, which should have left out the first."""
    places = [s.place for p in (one, other) for s in p.steps[-1:] if s.place is not None]
    return max(places, key=lambda place: getattr(place[0], "lineno", 0), default=None)


def _picks(run: Rehearsing, nodes: Iterable[Node], learning: bool) -> Iterator[Pick]:
    given = {id(n) for e in run.tape if e.name == "forward" for n in parts(e.result)}
    for node in nodes:
        if node.op != "getitem" or node.grad is not learning or len(node.inputs) < 2 or node.place is None:
            continue
        behind = ancestors(node.inputs[0], through=lambda n: n.op in SHAPED)
        if any(id(n) in given for n in behind) and (steps := selected(node)) and not any(s.moving for s in steps):
            yield Pick(node, steps)
