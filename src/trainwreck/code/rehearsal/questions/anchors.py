"""Weights are compared with what they were before: was that kept as a copy, or is it the weights themselves?

Penalties that hold a network near an earlier one (elastic weight consolidation, FedProx, L2-SP), and updates that are
measured or handed on as the difference to the weights before them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value, candidates
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
        if one is other and kept is None and (place := _listed(run, node)) is not None:
            moved = [e for e in steps(run) if e.serial < node.serial and any(p is one for p in held(e))]
            if moved:
                text = "this list holds the weights themselves, which are trained: the difference is always zero"
                yield Answer(place, text, (node.place,))
                return
        if one is not other or kept is None or kept.place is None:
            continue
        moved = [s for s in steps(run) if kept.serial < s.serial < node.serial and any(p is one for p in held(s))]
        moved += [w for w in one.writes if w.name in AVERAGES and w.turns and kept.serial < w.serial < node.serial]
        if not moved or _other_memory(one, kept, node):
            continue
        text = "these weights are kept by reference and change with the training: the difference to them is always zero"
        yield Answer(kept.place, text, tuple(p for p in (moved[0].place, node.place) if p is not None))
        return


def _listed(run: Rehearsing, node: Node) -> Place | None:
    """Where the list was made that one side of a difference comes from, in a loop over it and the weights side by
    side: ``for p, a in zip(net.parameters(), anchor)``."""
    if node.place is None:
        return None
    at, scope = node.place
    used = {n.id for n in ast.walk(at) if isinstance(n, ast.Name)}
    for above in run.project.ancestors(at, scope):
        loops: list[ast.For | ast.comprehension] = [above] if isinstance(above, ast.For) else []
        loops += getattr(above, "generators", [])
        for loop in loops:
            given = loop.iter.args if isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "zip" else []
            targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
            for target, source in zip(targets, given, strict=False):
                if isinstance(target, ast.Name) and target.id in used and isinstance(source, ast.Name):
                    found = [b for b in run.project.lookup(source.id, scope) if b.kind == "assign"]
                    if len(found) == 1 and isinstance(found[0].value, ast.ListComp | ast.Call):
                        return found[0].node, found[0].scope
    return None


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
