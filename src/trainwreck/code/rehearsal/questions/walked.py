"""Decoders that go through their targets in a loop of the program: which token is a step given, and which one is it
taught to answer?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Turn, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import given, losses
from trainwreck.code.rehearsal.questions.trails import MOVES, Trail, trail
from trainwreck.core.row import Row


class Step(Row):
    """The first step of a walk: the answer's target and the token that was given lie at these positions."""

    loss: Node
    asked: int
    target: Node
    """The slice that says which tokens are the targets."""
    given: int
    fed: Node
    """Where the token is taken that the step is given."""


HIDES = frozenset(["masked_fill", "where", "setitem", "masked_scatter", "scatter", "bernoulli"])


def steps(run: Rehearsing) -> list[Step]:
    if "walked" not in run.memo:
        found = [s for loss in losses(run, "cross_entropy", "nll_loss") if (s := _step(loss)) is not None]
        run.memo["walked"] = found
    known: list[Step] = run.memo["walked"]
    return known


def same_token(run: Rehearsing) -> Iterator[Answer]:
    """Each step is given the very token that it is to answer."""
    for step in steps(run):
        if step.asked == step.given:
            place = step.fed.place if step.given else step.target.place
            if place is not None:
                text = "each step is given the very token that it is to answer"
                proof = tuple(n.place for n in (step.target, step.loss) if n.place is not None)
                yield Answer(place, text, proof)
                return


def two_ahead(run: Rehearsing) -> Iterator[Answer]:
    """Each step is to answer the token after the next one."""
    for step in steps(run):
        if step.asked == step.given + 2 and step.target.place is not None:
            text = "each step is to answer the token after the next one: the one between is never seen"
            yield Answer(step.target.place, text, tuple(p for p in (step.fed.place, step.loss.place) if p is not None))
            return


def _step(loss: Node) -> Step | None:
    scores, target = given(loss, "input", 0), given(loss, "target", 1)
    answer, walk = _first_answer(scores, loss)
    if answer is None or walk is None:
        return None
    wanted = _position(target, walk) if walk in loss.turns else _whole(target)
    fed = _fed(answer, walk)
    if wanted is None or fed is None or fed[0].root is not wanted[0].root or fed[0].symbols != wanted[0].symbols:
        return None
    asked = {id(n) for n in ancestors(target)}
    if any(n.op in HIDES and id(n) not in asked for n in ancestors(fed[2])):
        return None  # some tokens were hidden, and are to be filled in
    return Step(loss, wanted[1], wanted[2], fed[1], fed[2])


def _first_answer(scores: Value, loss: Node) -> tuple[Node | None, Turn | None]:
    """What the first turn of a loop over positions answers, and that turn."""
    at = scores
    for _ in range(12):
        if not isinstance(at, Node):
            return None, None
        if at.op in ("stack", "cat", "concat"):
            held = at.inputs[0] if at.inputs else None
            first = held.items[0] if isinstance(held, Items) and held.items else None
            if not isinstance(first, Node):
                return None, None
            turn = next((t for t in first.turns if t not in loss.turns), None)
            return (first, turn) if _is_walk(turn) else (None, None)
        if at.op not in MOVES or not at.inputs:
            break
        at = at.inputs[0]
    if not isinstance(at, Node) or not loss.turns or not _is_walk(loss.turns[-1]):
        return None, None
    return at, loss.turns[-1]


def _is_walk(turn: Turn | None) -> bool:
    """True for the first turn of ``for t in range(...)`` of which it is known where it begins."""
    over = turn.over if turn is not None else None
    return (
        turn is not None
        and turn.index == 0
        and isinstance(over, Items)
        and over.kind == "range"
        and type(over.items[0] if over.items else None) is int
    )


def _whole(target: Value) -> tuple[Trail, int, Node] | None:
    """Where the first of all targets lies."""
    found = trail(target)
    cut = found.cut if found is not None else None
    if found is None:
        return None
    return found, found.start, cut or found.root


def _position(value: Value, walk: Turn) -> tuple[Trail, int, Node] | None:
    """Where the token lies that is taken in this turn: ``ids[:, t]``."""
    at = value
    for _ in range(12):
        if isinstance(at, Node) and at.op == "either":
            known = [c for c in candidates(at) if isinstance(c, Node) and not c.grad]
            picked = [c for c in known if c.op == "getitem"]
            at = picked[0] if len(picked) == 1 else None
        if not isinstance(at, Node) or not at.inputs:
            return None
        if at.op == "getitem" and len(at.inputs) > 1:
            index = at.inputs[1] if isinstance(at.inputs[1], tuple) else (at.inputs[1],)
            numbers = [i for i in index if type(i) is int]
            whole = [i for i in index if isinstance(i, Obj) and i.args[:2] == (None, None)]
            base = trail(at.inputs[0])
            if len(numbers) != 1 or len(index) not in (1, 2) or len(whole) != len(index) - 1 or base is None:
                return None
            return (base, base.start + numbers[0], at) if numbers[0] >= 0 else None
        if at.op not in MOVES:
            return None
        at = at.inputs[0]
    return None


def _fed(answer: Node, walk: Turn) -> tuple[Trail, int, Node] | None:
    """The token that the step is given, where it looks up exactly one, and nothing else of it."""
    found: list[tuple[Trail, int, Node]] = []
    for node in ancestors(answer):
        if node.op not in ("embedding", "one_hot") or walk not in node.turns or not node.inputs:
            continue
        taken = _position(node.inputs[0], walk)
        if taken is None:
            return None
        found.append(taken)
    if len(found) != 1:
        return None
    others = (n for n in ancestors(answer) if n.op in ("embedding", "one_hot") and walk not in n.turns and n.inputs)
    roots = [t.root for n in others if (t := trail(n.inputs[0])) is not None]
    return None if any(r is found[0][0].root for r in roots) else found[0]


__all__ = ["same_token", "two_ahead"]
