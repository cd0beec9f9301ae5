"""Masks of what is real that a network is given, and that nothing it computes depends on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import REDUCTIONS
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.trails import trail
from trainwreck.code.scopes import FunctionNode

TESTS = frozenset(["lt", "le", "gt", "ge", "eq", "ne"])
PADS = pattern(r"(^|_)pad(ding)?(_|$)", re.IGNORECASE)
MASK = pattern(r"mask|valid|real|keep|pad", re.IGNORECASE)
LENGTHS = pattern(r"(^|_)(lengths?|lens|seq_?lens?)$", re.IGNORECASE)
FLIPS = frozenset(["invert", "logical_not", "float", "bool", "to", "getitem", "element", "batch", "part", "unsqueeze"])
MAX_STEPS = 10


def never_asked(run: Rehearsing) -> Iterator[Answer]:
    """A forward is given which positions are real, and its result is the same without: padding takes part in it."""
    losses = backwards(run)
    if not losses:
        return
    learned = {id(n) for e in losses for n in ancestors(e.subject)}
    told: set[int] = set()
    for event in run.tape:
        if event.name != "forward" or not isinstance(event.subject, Obj) or event.subject.cls is None:
            continue
        if not isinstance(event.result, Node) or id(event.result) not in learned:
            continue
        for name, value in _given(event):
            told_by = isinstance(value, Node) and (_marks_padding(value) or _of_tokens(run, name, value))
            if not isinstance(value, Node) or not (told_by or _lengths(name, value)):
                continue
            place = _last_return(event)
            if id(value) in learned or place is None or id(place[0]) in told:
                continue
            if _asked_elsewhere(event, name) or _backwards_only(event.result):
                continue
            told.add(id(place[0]))
            text = f"{name} tells which positions are real, and nothing here depends on it: padding takes part"
            yield Answer(place, text, (event.place,) if event.place is not None else ())


CAUSAL = frozenset(["triu", "tril", "generate_square_subsequent_mask", "pack_padded_sequence"])
"""Where nothing later is seen, and where padding was taken out: padding behind the tokens reaches none of them."""
POOLS = REDUCTIONS | {"max_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d"}
"""What puts all tokens into one."""


def _asked_elsewhere(event: Event, name: str) -> bool:
    """True where a branch of the forward that isn't taken here reads the mask."""
    forward = event.subject.cls.find("forward") if isinstance(event.subject, Obj) and event.subject.cls else None
    if not isinstance(forward, Function):
        return False
    branches = (n for n in ast.walk(forward.node) if isinstance(n, ast.If | ast.IfExp))
    ways = [b for n in branches for b in ([*n.body, *n.orelse] if isinstance(n, ast.If) else [n.body, n.orelse])]
    read = (n for w in ways for n in ast.walk(w) if isinstance(n, ast.Name))
    early = any(isinstance(n, ast.Return) for w in ways for n in ast.walk(w))  # what follows is the other branch
    found = any(n.id == name and isinstance(n.ctx, ast.Load) for n in read)
    return found or (early and sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(forward.node)) > 0)


def _backwards_only(result: Node) -> bool:
    """True where each token sees those before it alone, and nothing is pooled over the tokens afterwards."""
    hides = [n for n in ancestors(result) if n.op in CAUSAL or n.options.get("is_causal") is True]
    between = ancestors(result, through=lambda n: not n.inputs or all(n is not h for h in hides))
    return bool(hides) and not any(n.op in POOLS and n.grad for n in between)


def _given(event: Event) -> Iterator[tuple[str, Value]]:
    """The arguments of a forward, by the names that it has for them."""
    forward = event.subject.cls.find("forward") if isinstance(event.subject, Obj) and event.subject.cls else None
    if not isinstance(forward, Function) or not isinstance(forward.node, FunctionNode):
        return
    names = [a.arg for a in forward.node.args.args][1:]
    yield from zip(names, event.args, strict=False)
    yield from event.options.items()


def _marks_padding(value: Value) -> bool:
    """``arange(longest) < lengths``, or ``ids != PAD``."""
    for _ in range(MAX_STEPS):
        if not isinstance(value, Node) or not value.inputs:
            return False
        if value.op in TESTS:
            counts = any(isinstance(i, Node) and any(n.op == "arange" for n in near(i, 5)) for i in value.inputs)
            named = value.place is not None and any(
                isinstance(n, ast.Name | ast.Attribute) and PADS.search(n.id if isinstance(n, ast.Name) else n.attr)
                for n in ast.walk(value.place[0])
            )
            return counts or (named and value.op in ("eq", "ne"))
        if value.op not in FLIPS:
            return False
        value = value.inputs[0]
    return False


def _of_tokens(run: Rehearsing, name: str, value: Node) -> bool:
    """``ids != 0`` that is handed over as a mask, of numbers that an embedding looks up."""
    tested = value.op in ("eq", "ne") and len(value.inputs) > 1 and isinstance(value.inputs[1], int)
    tokens = trail(value.inputs[0]) if tested and MASK.search(name) else None
    if tokens is None:
        return False
    tables = (n for n in run.nodes if n.op == "embedding" and n.inputs)
    return any((found := trail(n.inputs[0])) is not None and found.root is tokens.root for n in tables)


def _lengths(name: str, value: Node) -> bool:
    """True for how long each row is, handed over as that."""
    return bool(LENGTHS.search(name)) and not value.grad and any(n.op == "len" for n in near(value, 12))


def _last_return(event: Event) -> Place | None:
    """The statement of the forward that gives its result."""
    forward = event.subject.cls.find("forward") if isinstance(event.subject, Obj) and event.subject.cls else None
    if not isinstance(forward, Function) or not isinstance(forward.node, FunctionNode):
        return None
    returns = [n for n in ast.walk(forward.node) if isinstance(n, ast.Return)]
    scope = next((p[1] for p in _places(event) if p[1].node is forward.node), None)
    return (returns[-1], scope) if returns and scope is not None else None


def _places(event: Event) -> Iterator[Place]:
    result = event.result
    for node in near(result, 40) if isinstance(result, Node) else ():
        yield from (p for p in (*node.stack, node.place) if p is not None)


__all__ = ["never_asked"]
