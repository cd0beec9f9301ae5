"""Keys and values that a decoder keeps: of their own kind and layer, and handed on from token to token."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, RAW, STRUCTURE

Kind = tuple[object, ...]
PICKED = frozenset(["argmax", "multinomial", "sample", "topk", "argmin"])
KEEPING = ("cache", "past", "kv", "memory", "state", "hidden")


def other_kind(run: Rehearsing) -> Iterator[Answer]:
    """Kept keys are joined with new values, the other way round, or with those of another layer."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op != "scaled_dot_product_attention" or len(node.inputs) < 3 or node.grad:
            continue
        joined = [_joined(v) for v in node.inputs[1:3]]
        if None in joined:
            continue
        kinds = [tuple(_kind(part) for part in pair) for pair in joined if pair is not None]
        if any(k is None for pair in kinds for k in pair):
            continue
        for pair, (old, new), which in zip(joined, kinds, ("keys", "values"), strict=True):
            place = pair[0].place if pair is not None else None
            if old == new or pair is None or old is None or new is None:
                continue
            here = next(
                (n.place for n in ancestors(node.inputs[1 if which == "keys" else 2], through=_moves) if n.op in JOINS),
                place,
            )
            if here is None or id(here[0]) in told:
                continue
            told.add(id(here[0]))
            if old[0] != new[0]:
                here = _chosen(node) or here
            what = "of another layer" if old[0] != new[0] else "of the other kind: keys and values change places"
            yield Answer(here, f"the {which} of new tokens are joined with kept ones {what}")
            return


def _chosen(node: Node) -> Place | None:
    """The call on the way there that is given one of several kept ones by its number."""
    for place in reversed(node.stack):
        call = place[0]
        given = [n for a in call.args for n in ast.walk(a)] if isinstance(call, ast.Call) else []
        if any(isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant) for n in given):
            return place
    return None


def _moves(node: Node) -> bool:
    return node.op in STRUCTURE


def _joined(value: Value) -> tuple[Node, Node] | None:
    """The kept part and the new one."""
    for node in ancestors(value, through=_moves):
        if node.op in JOINS and node.inputs:
            items = list(parts(node.inputs[0]))
            return (items[0], items[1]) if len(items) == 2 and all(isinstance(i, Node) for i in items) else None
    return None


def _kind(node: Node) -> Kind | None:
    """Which layer made keys or values, and which part of its output they are."""
    at: Value = node
    which: object = None
    for _ in range(16):
        if not isinstance(at, Node):
            return None
        if at.op in RAW:
            weight = next((id(i) for i in at.inputs if isinstance(i, Node) and i.op == "param"), None)
            return (weight, which) if weight is not None else None
        if at.op in JOINS and at.inputs:
            at = next(iter(parts(at.inputs[0])), None)
            continue
        if (
            at.op in ("part", "getitem", "element")
            and len(at.inputs) > 1
            and isinstance(at.inputs[1], int)
            and which is None
        ):
            which = at.inputs[1]
        if at.op not in STRUCTURE | {"part", "chunk", "unbind", "split"} or not at.inputs:
            return None
        at = at.inputs[0]
    return None


def not_handed_on(run: Rehearsing) -> Iterator[Answer]:
    """From token to token the network is given what it kept of the prompt alone, or nothing that it kept."""
    events = [e for e in run.tape if e.name == "forward" and isinstance(e.subject, Obj) and e.subject.cls is not None]
    for number, later in enumerate(events):
        if not later.turns or not later.turns[-1].generic or later.state.get("grad") or later.place is None:
            continue
        if not _one_token(later.args[0] if later.args else None, later):
            continue
        first = next((e for e in events[:number] if e.place is not None and e.place[0] is later.place[0]), None)
        before = next(
            (e for e in events[:number] if e.subject is later.subject and not e.turns[len(later.turns) - 1 :]), None
        )
        if first is None or not isinstance(later.result, tuple) or len(later.result) < 2:
            continue
        name = _keeps(later)
        if name is None:
            continue
        position, option = name
        given = later.options.get(option, later.args[position] if position < len(later.args) else None)
        if given is None:
            if before is not None and isinstance(before.result, tuple) and len(before.result) > 1:
                text = "the network is given the last token alone here, and nothing that it kept of those before"
                yield Answer(later.place, text, (before.place,) if before.place is not None else ())
                return
            continue
        early = first.options.get(option, first.args[position] if position < len(first.args) else None)
        made = {id(p) for r in first.result[1:] for p in _nodes(r)} if isinstance(first.result, tuple) else set()
        same = {id(p) for p in _nodes(given)} == {id(p) for p in _nodes(early)}
        if same and made and not made & {id(p) for p in _nodes(given)} and _nodes(given):
            text = "what the network keeps of each token is dropped: it is given the same again for every one"
            yield Answer(later.place, text, (before.place,) if before is not None and before.place is not None else ())
            return


def _nodes(value: Value) -> list[Node]:
    if isinstance(value, Items | tuple):
        return [n for i in (value.items if isinstance(value, Items) else value) for n in _nodes(i)]
    return [value] if isinstance(value, Node) else []


def _one_token(value: Value, event: Event) -> bool:
    """True for the token that was picked last, alone."""
    if not isinstance(value, Node) or value.shape.open or value.shape.dims[-1:] != (1,):
        return False
    return any(
        n.op in PICKED for n in ancestors(value, through=lambda n: n.op in STRUCTURE or n.op in ("part", "either"))
    )


def _keeps(event: Event) -> tuple[int, str] | None:
    """Place and name of the argument for what is kept, which need not be given."""
    function = event.subject.cls.find("forward") if event.subject.cls is not None else None
    if not isinstance(function, Function):
        return None
    args = function.node.args.args[1:]
    optional = args[len(args) - len(function.node.args.defaults) :] if function.node.args.defaults else []
    for arg in optional:
        if any(word in arg.arg.lower() for word in KEEPING):
            return args.index(arg), arg.arg
    return None


HEADS = STRUCTURE | JOINS | RAW
"""What lies between the scores of a loss and the weights that they are made with."""


def least_likely(run: Rehearsing) -> Iterator[Answer]:
    """The token with the least logit is taken, and given to the network that learned to make the right one largest."""
    learned = {id(p) for n in run.nodes if n.op == "cross_entropy" and n.grad and n.inputs for p in ancestors(
        n.inputs[0], through=lambda n: n.op in HEADS) if p.op == "param"}  # fmt: skip
    fed = {id(n) for e in run.tape if e.name == "forward" and not e.state.get("grad") and e.turns for a in e.args[:1]
           for n in ancestors(a, through=lambda n: n.op not in RAW)} if learned else set()  # fmt: skip
    for node in run.nodes if learned else ():
        picks = node.op == "argmin" or (node.op in ("min", "topk") and _least(run, node))
        if not picks or node.place is None or id(node) not in fed or not node.inputs:
            continue
        scores = ancestors(
            node.inputs[0], through=lambda n: n.op in STRUCTURE or n.op in ("softmax", "log_softmax", *RAW)
        )
        if any(id(n) in learned for n in scores):
            text = "the least likely token is taken here and given to the network"
            yield Answer(node.place, text)
            return


def _least(run: Rehearsing, node: Node) -> bool:
    if node.op == "topk":
        return node.get("largest", 3) is False
    return any(
        n.op == "part" and n.inputs and n.inputs[0] is node and n.inputs[1:] in ((1,), ("indices",)) for n in run.nodes
    )


__all__ = ["least_likely", "not_handed_on", "other_kind"]
