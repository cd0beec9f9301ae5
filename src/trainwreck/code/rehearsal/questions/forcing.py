"""A value that is made a leaf on the way to the loss, so that its backward runs and reaches no weight."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.graph import ancestors, graph, opaque
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, steps

LAYERS = frozenset("linear matmul bmm mm conv1d conv2d conv3d embedding lstm gru batch_norm layer_norm".split())


def forced(run: Rehearsing) -> Iterator[Answer]:
    """A loss whose graph begins at a value which a network computed and ``requires_grad`` was switched on for."""
    learning = {id(p) for s in steps(run) for p in held(s)}
    told: set[int] = set()
    for event in backwards(run) if learning else ():
        nodes = [n for n in graph(event.subject) if n.grad]
        leaves = [n for n in nodes if n.op == "param"]
        if not leaves or opaque(event.subject) or any(n.op in LAYERS for n in nodes):
            continue  # what a network goes on from is an input of its own: latents, one side of a split network
        if any(id(p) in learning or p.owner is not None or not p.inputs for p in leaves):
            continue
        for leaf in leaves:
            if any(n.op in ("attribute", "grad") and n.name in ("grad", "") and leaf in n.inputs for n in run.nodes):
                continue  # its gradient is what is asked for
            behind = any(id(n) in learning for n in ancestors(leaf))
            if behind and leaf.place is not None and id(leaf.place[0]) not in told:
                told.add(id(leaf.place[0]))
                text = "requires_grad is forced on what is cut from the graph: backward runs, and reaches no weight"
                yield Answer(leaf.place, text, (event.place,) if event.place is not None else ())
