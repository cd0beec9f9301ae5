"""A divergence from a reference that is worked out in each update, and that nothing learned or paid depends on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.graph import ancestors, opaque
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, same_turn, steps
from trainwreck.code.rehearsal.questions.policy import surrogates
from trainwreck.code.rehearsal.questions.roles import backwards, users
from trainwreck.code.scopes import Scope

LOGARITHMS = frozenset(["log_prob", "log_softmax", "logsumexp"])
GAPS = frozenset(["sub", "kl_div", "kl_divergence"])
WEIGHT = pattern(r"(^|_)(kl|beta|coef|coeff|lambda|lam|alpha|penalty|weight)(_|$)")
"""What the weight of a penalty may be called; asked only beside a divergence that is used nowhere."""


def held_by_nothing(run: Rehearsing) -> Iterator[Answer]:
    """The policy's likelihoods are compared with those of a frozen network, and neither a loss nor a reward knows: the
    divergence is read by nothing, or it is only shown, and the weight that is set for it is read by nothing."""
    events = [event for event, _ in surrogates(run)]
    if not events or any(opaque(e.subject) for e in backwards(run)):
        return
    learning = {id(p) for s in steps(run) for p in held(s)}
    behind = {id(n): n for e in backwards(run) for n in ancestors(e.subject)}
    frozen_used = any(n.op == "param" and i not in learning for i, n in behind.items())
    if not learning or frozen_used:
        return
    table = users(run)
    for node in run.nodes:
        if node.op not in GAPS or not node.grad or id(node) in behind or node.place is None:
            continue
        event = next((e for e in events if e.serial > node.serial and _together(e, node)), None)
        if event is None or not _from_reference(node, learning):
            continue
        top = _whole(node, table)
        place = top.place or node.place
        proof = (event.place,) if event.place is not None else ()
        if _unread(place):
            yield Answer(place, "the divergence from the reference is worked out here, and nothing reads it", proof)
            return
        name = _weight(place[1])
        if name:
            text = f"the divergence from the reference is no part of what is learned from: {name} is read by nothing"
            yield Answer(place, text, proof)
            return


def _together(event: Event, node: Node) -> bool:
    return bool(event.turns) and same_turn(event, node) and len(node.turns) >= len(event.turns)


def _from_reference(node: Node, learning: set[int]) -> bool:
    """True for likelihoods of the network that learns less those of one that doesn't."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    if len(sides) != 2 or sides[0].grad == sides[1].grad:
        return False
    still, live = sorted(sides, key=lambda s: s.grad)
    nearest = next((id(n) for n in ancestors(still) if n.op == "param"), None)  # the tokens may be the policy's
    logs = all(any(n.op in LOGARITHMS for n in ancestors(s)) for s in sides)
    moves = any(n.op == "param" and id(n) in learning for n in ancestors(live))
    return logs and moves and nearest is not None and nearest not in learning


def _whole(node: Node, table: dict[int, list[Node]]) -> Node:
    """The value that the difference ends in, within the same statement."""
    for _ in range(12):
        line = getattr(node.place[0], "lineno", 0) if node.place is not None else 0
        onward = [u for u in table.get(id(node), []) if u.place is not None and u.grad]
        following = next((u for u in onward if u.place and getattr(u.place[0], "lineno", 0) == line), None)
        if following is None:
            break
        node = following
    return node


def _unread(place: Place) -> bool:
    """True where the value gets a name in this statement that its function never reads."""
    node, scope = place[0], place[1]
    for found in scope.nodes:
        if isinstance(found, ast.Assign) and any(inner is node for inner in ast.walk(found.value)):
            names = [t.id for t in found.targets if isinstance(t, ast.Name)]
            if len(names) != len(found.targets):
                return False
            return not any(
                isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names
                for n in ast.walk(scope.module.tree)
            )
    return False


def _weight(scope: Scope) -> str:
    """A number of the script, called like the weight of a penalty, that nothing reads."""
    tree = scope.module.tree
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    read |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    read |= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    for node in ast.walk(tree):
        for target, value in _numbers(node):
            name = (
                target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
            )
            if name and name not in read and WEIGHT.search(name.lower()) and value:
                return name
    return ""


def _numbers(node: ast.AST) -> Iterator[tuple[ast.expr, float]]:
    """The names that a statement gives numbers to."""
    match node:
        case ast.AnnAssign(target=target, value=ast.Constant(value=int() | float() as number)):
            yield target, number
        case ast.Assign(targets=targets, value=ast.Constant(value=int() | float() as number)):
            yield from ((target, number) for target in targets)
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            for name, value in zip(names, values, strict=True):
                if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                    yield name, value.value


__all__ = ["held_by_nothing"]
