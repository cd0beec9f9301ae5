"""Which optimizers' parameters each loss reaches: two losses that take turns and both reach both models are entangled.

The generator's loss must go through the discriminator; the discriminator's need not go back into the generator. Where
it does, its gradient stays there until the generator's own step.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from . import graph
from .callers import Place, place
from .probe import Backward, Probe, Step

ROUNDS = 3
"""Sampled rounds that must agree."""
Line = tuple[CodeType, int]


class Reach(Probe):
    """Event ``live-losses-reach-each-other``."""

    name = "reach of losses"
    rarely = frozenset(("backward", "before_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._last: tuple[Line, frozenset[int], bool, Place | None, Any] | None = None
        self._seen: dict[Line, list[tuple[frozenset[int], int]]] = {}
        self._places: dict[Line, Place | None] = {}
        self._left: set[Line] = set()

    def backward(self, moment: Backward) -> None:
        """Note which optimizers hold the leaves under this loss."""
        root = moment.loss.grad_fn
        if len(self.recorder.optimizers) < 2 or root is None or moment.frame is None or not moment.sampled:
            self._last = None
            return
        owners = {id(p): w.index for w in self.recorder.optimizers.values() for p in w.parameters}
        found: list[int] = []
        edge = None
        for node in graph.nodes(root):
            leaf = getattr(node, "variable", None)
            index = owners.get(id(leaf)) if leaf is not None else None
            if index is not None and index not in found:
                found.append(index)
        line = moment.frame.f_code, moment.frame.f_lineno
        again = self._last is not None  # a second backward before any step: the losses are added up on purpose
        self._last = line, frozenset(found), again, place(moment.frame), edge
        self._nearest = found[0] if found else -1

    def before_step(self, step: Step) -> None:
        """Which optimizer does the loss before it serve?"""
        last, self._last = self._last, None
        if last is None or last[2]:
            return
        line, owners, _, where, _ = last
        self._seen.setdefault(line, []).append((owners, step.watched.index))
        self._places[line] = where
        if len(self._seen) == 2 and all(len(s) >= ROUNDS for s in self._seen.values()):
            self._judge(step)

    def _judge(self, step: Step) -> None:
        (one, first), (other, second) = self._seen.items()
        served = [{index for _, index in s} for s in (first, second)]
        reached = {owners for s in (first, second) for owners, _ in s}
        if (
            len(reached) != 1
            or len(next(iter(reached))) != 2
            or any(len(s) != 1 for s in served)
            or served[0] == served[1]
        ):
            return
        cleared = any(w is not step.watched and all(p.grad is None for p in w.parameters) for w in self._others(step))
        line = one if self._nearest in served[0] else other
        where = self._places[line]
        text = (
            "each of two losses that take turns reaches the parameters of both optimizers: the gradient of the one is"
            " left in the model of the other" + (", and cleared there" if cleared else "")
        )
        facts: dict[str, Any] = {"path": where[0], "line": where[1]} if where is not None else {}
        self.tell("live-losses-reach-each-other", text, step=step.number, **facts)

    def _others(self, step: Step) -> list[Any]:
        return [w for w in self.recorder.optimizers.values() if w is not step.watched]
