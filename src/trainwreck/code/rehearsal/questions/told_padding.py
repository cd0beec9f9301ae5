"""Masks of what is real outside of attention: sums over the tokens, states that are carried on, functions that are
given one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.masks import padding
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained, users
from trainwreck.code.scopes import FunctionNode, Scope

MASK = pattern(r"(^|_)(mask|valid|real|keep|lengths?|pad)(_|$)")
FEW = 40
EMPTY = frozenset(["zeros_like", "ones_like", "zeros", "ones", "full", "full_like"])


def tokens_left_out(run: Rehearsing) -> Iterator[Answer]:
    yield from list(padding_summed(run)) or carried_over_tokens(run)


def padding_summed(run: Rehearsing) -> Iterator[Answer]:
    """``(scores * mask).sum()`` with a mask that is true on the padding: the tokens are left out of the loss."""
    for node in trained(run):
        if node.op != "mul" or len(node.inputs) < 2 or node.place is None or node.shape.open:
            continue
        for value, mask in (node.inputs[:2], node.inputs[1::-1]):
            if not isinstance(value, Node) or not value.grad or not isinstance(mask, Node) or mask.grad:
                continue
            if len(mask.shape.dims) == 2 and padding(mask) is True and _summed(run, node):
                place = _made(mask) or node.place
                yield Answer(place, "this mask is true on the padding: what is summed is of no token", (node.place,))
                return


def carried_over_tokens(run: Rehearsing) -> Iterator[Answer]:
    """``where(mask[:, t], old, new)``: the state moves at the padding, and stays as it was at the tokens."""
    for node in trained(run):
        if node.op != "where" or len(node.inputs) < 3 or not node.turns or node.place is None:
            continue
        mask, first, second = node.inputs[:3]
        marks = padding(mask)
        if marks is None or not isinstance(first, Node) or not isinstance(second, Node):
            continue
        if any(side.op in EMPTY for side in (first, second)):
            continue  # nothing is carried on where the other one is nothing
        older = _from(first, second), _from(second, first)  # which of the two the other one was computed from
        if older[0] == older[1]:
            continue
        moves_on_mask = older[0]  # the first was computed from the second: it is the new state
        if moves_on_mask is marks:
            text = "the state is kept where there is a token, and moves on where there is padding"
            yield Answer(node.place, text)
            return


def _from(value: Node, other: Node) -> bool:
    return any(n is other for n in ancestors(value))


def _summed(run: Rehearsing, node: Node) -> bool:
    front = [node]
    for _ in range(4):
        after = [u for n in front for u in users(run).get(id(n), ())]
        if any(u.op in ("sum", "mean") for u in after):
            return True
        front = [u for u in after if u.op in (*STRUCTURE, "neg", "mul", "div")]
    return False


def _made(mask: Node) -> Place | None:
    """Where the padding is told from the tokens."""
    tests = ancestors(mask, through=lambda n: n.op not in ("eq", "ne", "lt", "le", "gt", "ge"))
    return next((n.place for n in tests if n.op in ("eq", "ne", "lt", "le", "gt", "ge")), None)


def mask_unread(run: Rehearsing) -> Iterator[Answer]:
    """A function is given the mask like those beside it, and computes its part of the loss without reading it."""
    shown = {id(p[0]): p for n in trained(run) for p in n.stack}
    for call, scope in shown.values():
        if not isinstance(call, ast.Call):
            continue
        function = _called(run, call, scope)
        if function is None or _does_nothing(function) or call.keywords:
            continue
        names = [a.arg for a in function.args.args]
        names = names[1:] if names[:1] == ["self"] else names
        for name, given in zip(names, call.args, strict=False):
            if not MASK.search(name) or not isinstance(given, ast.Name) or _reads(function, name):
                continue
            beside = [c for c, s in shown.values() if s is scope and c is not call and isinstance(c, ast.Call)]
            if any(_reads_it(run, other, scope, given.id) for other in beside):
                yield from _told(run, function, name, (call, scope))
                return


def _told(run: Rehearsing, function: FunctionNode, name: str, call: Place) -> Iterator[Answer]:
    inner = next((s for s in run.project.scopes if s.node is function), None)
    last = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    if inner is not None and last:
        text = f"{name} tells which positions are real, and nothing here reads it: padding counts like tokens"
        loops = [n for n in ast.walk(function) if isinstance(n, ast.For)]
        place = loops[0].body[-1] if loops else last[-1]
        yield Answer((place, inner), text, (call,))


def _called(run: Rehearsing, call: ast.Call, scope: Scope) -> FunctionNode | None:
    found = run.project.resolve(call.func, scope)
    node = getattr(found, "node", None)
    return node if isinstance(node, FunctionNode) else None


def _does_nothing(function: FunctionNode) -> bool:
    return len(list(ast.walk(function))) < FEW


def _reads(function: FunctionNode, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(function))


def _reads_it(run: Rehearsing, call: ast.Call, scope: Scope, name: str) -> bool:
    """True for a call of a function of the program that is given the same value, and reads it."""
    function = _called(run, call, scope)
    if function is None:
        return False
    names = [a.arg for a in function.args.args]
    names = names[1:] if names[:1] == ["self"] else names
    return any(
        isinstance(given, ast.Name) and given.id == name and _reads(function, own)
        for own, given in zip(names, call.args, strict=False)
    )


__all__ = ["carried_over_tokens", "mask_unread", "padding_summed", "tokens_left_out"]
