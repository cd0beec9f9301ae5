"""Equations that a network is to fulfil: do all derivatives in their residual hang in the graph?

``u_xx = grad(u_x, x, one)[0]`` without ``create_graph`` is a number for the optimizer. Beside ``u`` or ``u_x`` in one
sum it makes the network fit the rest of the equation to what this term happens to be. Left alone are derivatives of
which another use is made: steps along a gradient (the sum holds the point, not the value), targets that are summed up
under ``no_grad``, coefficients that are detached before they multiply a higher derivative (Picard's iteration).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.cuts import DETACHES
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained

SUMS = frozenset(["add", "sub"])
FACTORS = frozenset(["mul", "div", "neg", "pow"])
MOVES = (STRUCTURE - DETACHES) | frozenset(["part"])
MAX_DEPTH = 30


def derivative_cut_off(run: Rehearsing) -> Iterator[Answer]:
    """A derivative without a graph in a sum with the value that it is the derivative of, or another one of it."""
    told: set[int] = set()
    whole = {key for n in run.nodes if n.op == "grad" and n.inputs for key in _line(n) if key != id(n)}
    if not whole:
        return
    for node in trained(run):
        if node.op not in SUMS or not node.grad:
            continue
        terms = [list(_factors(leaf, whole)) for leaf in _terms(node, whole)]
        for factors in terms:
            for cut in factors:
                derivative = cut if cut.op == "grad" and not cut.grad else _detached(cut)
                if derivative is None or cut.place is None or id(cut.place[0]) in told:
                    continue
                of = _line(derivative)
                if not any(n.op == "param" and n.trainable is not False for n in ancestors(derivative.inputs[:1])):
                    continue
                if derivative is not cut and any(f.grad and _line(f) > of for f in factors):
                    continue  # the coefficient of the turn before
                beside = next((f for t in terms if t is not factors for f in t if f.grad and _line(f) & of), None)
                if beside is not None:
                    told.add(id(cut.place[0]))
                    why = "create_graph is not set here" if derivative is cut else "the gradient ends here"
                    text = f"{why}: this term of the equation is a number and trains nothing"
                    yield Answer(cut.place, text, (node.place,) if node.place is not None else ())


def derivative_of_a_number(run: Rehearsing) -> Iterator[Answer]:
    """A derivative that was taken without a graph, of which another derivative is asked for: torch refuses."""
    for event in run.tape:
        subject = event.subject
        if event.name != "grad" or not isinstance(subject, Node) or subject.grad:
            continue
        behind = ancestors(subject, through=lambda n: not n.grad and n.op != "grad")
        without = next((n for n in behind if n.op == "grad" and not n.grad and n.place is not None
                        and isinstance(n.place[0], ast.Call)), None)  # fmt: skip
        if without is not None and without.place is not None and not any(n.grad for n in behind):
            text = "create_graph is not set here, and a derivative of this is asked for below: it has no graph"
            yield Answer(without.place, text, (event.place,) if event.place is not None else ())
            return


def _detached(cut: Node) -> Node | None:
    """The derivative that was given a graph (``create_graph=True``) and is cut off from it."""
    at: Value = cut
    for _ in range(4):
        if isinstance(at, Node) and at.op in (*DETACHES, *MOVES) and at.inputs:
            at = at.inputs[0]
    cut_off = isinstance(at, Node) and at.op == "grad" and at.grad and cut.op in DETACHES and not cut.grad
    return at if cut_off and isinstance(at, Node) else None


def _terms(value: Value, whole: set[int], depth: int = 0) -> Iterator[Node]:
    """What is added up. ``whole``: what derivatives are taken of, which isn't taken apart."""
    if not isinstance(value, Node) or depth > MAX_DEPTH:
        return
    summed = value.inputs[0] if value.op in ("sum", "stack") and value.inputs else None
    if id(value) in whole or (value.op in SUMS and _switched_off(value)):
        yield value
    elif value.op in SUMS:
        for item in value.inputs[:2]:
            yield from _terms(item, whole, depth + 1)
    elif value.op == "sum" and isinstance(summed, Node) and summed.op == "stack":
        yield from _terms(summed, whole, depth + 1)
    elif isinstance(summed, Items | tuple):
        for item in summed.items if isinstance(summed, Items) else summed:
            yield from _terms(item, whole, depth + 1)
    else:
        yield value


def _switched_off(value: Node) -> bool:
    """True for a sum under ``no_grad`` of what has a graph: all of it is meant as a number."""
    return not value.grad and any(isinstance(i, Node) and i.grad for i in value.inputs[:2])


def _factors(value: Value, whole: set[int], depth: int = 0) -> Iterator[Node]:
    """What a term is a product of, each moved and selected at most."""
    if not isinstance(value, Node) or depth > MAX_DEPTH:
        return
    along = value.op == "sum" and len(value.inputs) > 1  # a Laplacian: over the axes of the space
    if id(value) in whole:
        yield value
    elif value.op in FACTORS:
        for item in value.inputs[:2]:
            yield from _factors(item, whole, depth + 1)
    elif value.op in SUMS:
        for leaf in _terms(value, whole, depth + 1):
            yield from _factors(leaf, whole, depth + 1)
    elif (along or value.op in MOVES) and value.inputs and isinstance(value.inputs[0], Node):
        yield from _factors(value.inputs[0], whole, depth + 1)
    else:
        yield value


def _line(value: Node) -> set[int]:
    """The value (by ``id``), and what it is the derivative of, of any order."""
    found: set[int] = set()
    at: Value = value
    for _ in range(MAX_DEPTH):
        if isinstance(at, Items | tuple):
            items = at.items if isinstance(at, Items) else at
            at = items[0] if len(items) == 1 else None
        if not isinstance(at, Node):
            break
        if at.op in MOVES or at.op in ("sum", "mean"):
            at = at.inputs[0] if at.inputs else None
            continue
        found.add(id(at))
        if at.op != "grad":
            break
        at = at.inputs[0]
    return found
