"""Weights are compared with what they were before: was that kept as a copy, or is it the weights themselves?

Penalties that hold a network near an earlier one (elastic weight consolidation, FedProx, L2-SP), and updates that are
measured or handed on as the difference to the weights before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value, candidates
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.checkpoints import AVERAGES, VIEWS, on_cpu
from trainwreck.code.rehearsal.questions.gradients import held, steps

COMPARES = frozenset(["sub", "dist", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "pairwise_distance"])
"""What is zero where both sides are the same values."""
SHAPED = frozenset(["view", "reshape", "flatten", "ravel", "view_as", "squeeze", "unsqueeze", "requires_grad_"])
"""What gives the same memory in another shape, of weights as they are laid out."""


def compared_with_itself(run: Rehearsing) -> Iterator[Answer]:
    """The difference of weights to what shares their memory, and was kept before they were trained on."""
    cpu = on_cpu(run)
    for node in run.nodes:
        if node.op not in COMPARES or len(node.inputs) < 2 or node.place is None:
            continue
        sides = [_shared(value, cpu) for value in node.inputs[:2]]
        if any(s is None or s[0].op != "param" for s in sides):
            continue
        (one, first), (other, second) = (s for s in sides if s is not None)
        kept = min((k for k in (first, second) if k is not None), key=lambda k: k.serial, default=None)
        if one is not other or kept is None or kept.place is None:
            continue
        moved = [s for s in steps(run) if kept.serial < s.serial < node.serial and any(p is one for p in held(s))]
        moved += [w for w in one.writes if w.name in AVERAGES and w.turns and kept.serial < w.serial < node.serial]
        if not moved or _other_memory(one, kept, node):
            continue
        text = "these weights are kept by reference and change with the training: the difference to them is always zero"
        yield Answer(kept.place, text, tuple(p for p in (moved[0].place, node.place) if p is not None))
        return


def _shared(value: Value, cpu: bool) -> tuple[Node, Node | None] | None:
    """The parameter whose memory ``value`` is, with what was first taken of it; None where it may be a copy."""
    found: list[tuple[Node, Node | None]] = []
    for one in candidates(value):
        at, first = one, None
        while isinstance(at, Node) and (at.op in VIEWS | SHAPED or (cpu and at.op == "cpu")) and at.inputs:
            first, at = at, at.inputs[0]
        if not isinstance(at, Node):
            return None
        found.append((at, first))
    return found[0] if found and all(f[0] is found[0][0] for f in found) else None


def _other_memory(param: Node, kept: Node, used: Node) -> bool:
    """True where the parameter was given other memory in between (``p.data = ...``): what was kept stayed as it was."""
    return any(w.name in ("copy_", "set_") and kept.serial < w.serial < used.serial for w in param.writes)


__all__ = ["compared_with_itself"]
