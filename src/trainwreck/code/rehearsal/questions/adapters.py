"""Low-rank adapters: how they start, how strong they are, whether they are part of what is trained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, unknown
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.code.rehearsal.questions.unused import given_away
from trainwreck.core.row import Row

LINEAR = frozenset(["linear", "matmul", "mm", "einsum", "conv1d", "conv2d", "bmm"])
NAMED = pattern(r"adapter|lora|low_?rank|dora|bottleneck|prefix|prompt|delta", re.IGNORECASE)
PASSES = STRUCTURE | frozenset(["dropout", "identity", "t", "T"])


class Pair(Row):
    """``node`` applies the matrix ``inner`` and then ``outer``."""

    node: Node
    outer: Node
    inner: Node


def pairs(run: Rehearsing) -> list[Pair]:
    """Products of two matrices without anything between them."""
    if "low-rank" not in run.memo:
        run.memo["low-rank"] = [p for n in run.nodes if n.op in LINEAR and (p := _pair(n)) is not None]
    found: list[Pair] = run.memo["low-rank"]
    return found


def _pair(node: Node) -> Pair | None:
    mine = [m for i in node.inputs if (m := _matrix(i)) is not None and m.name != "bias"]
    if len(mine) == 2 and node.op not in ("linear", "conv1d", "conv2d"):  # there the second one is the bias
        turned = node.op == "einsum" and starts_at_zero(mine[1]) and not starts_at_zero(mine[0])
        return Pair(node, mine[1], mine[0]) if turned else Pair(node, mine[0], mine[1])  # an equation has any order
    if not mine:
        return None
    for item in node.inputs:
        if isinstance(item, Node) and _matrix(item) is None:
            before = _plain(item)
            if before is not None and before.op in LINEAR:
                inner = [m for i in before.inputs if (m := _matrix(i)) is not None and m.name != "bias"]
                if inner and inner[0] is not mine[0]:
                    return Pair(node, mine[0], inner[0])
    return None


def _matrix(value: Value) -> Node | None:
    for _ in range(4):
        if not isinstance(value, Node):
            return None
        if value.op == "param":
            return value
        if value.op == "mul" and len(value.inputs) > 1 and any(number_of(i) is not None for i in value.inputs[:2]):
            value = next((i for i in value.inputs[:2] if number_of(i) is None), None)
        else:
            value = value.inputs[0] if (value.op in PASSES or value.op == "state") and value.inputs else None
    return None


def _plain(value: Value) -> Node | None:
    """What stands before numbers, shapes and dropout."""
    for _ in range(8):
        if not isinstance(value, Node):
            return None
        scaled = value.op in ("mul", "div") and len(value.inputs) > 1 and number_of(value.inputs[1]) is not None
        if (value.op in PASSES and value.inputs) or scaled:
            value = value.inputs[0]
        elif value.op == "mul" and number_of(value.inputs[0]) is not None:
            value = value.inputs[1]
        else:
            return value
    return None


def starts_at_zero(param: Node, before: int = 1 << 60) -> bool:
    """True where all elements of a parameter are zero when the training starts."""
    for event in reversed([e for e in param.writes if e.serial < before and e.name != "requires_grad"]):
        if event.turns and event.name not in _FILLS:
            continue
        return _writes_zero(event)
    first = param.inputs[0] if param.inputs else None
    while isinstance(first, Node) and first.op in STRUCTURE | {"param"} and first.inputs:
        first = first.inputs[0]
    return isinstance(first, Node) and first.op in ("zeros", "zeros_like", "new_zeros")


_FILLS = frozenset(
    """zeros_ zero_ constant_ fill_ normal_ uniform_ copy_ kaiming_uniform_ kaiming_normal_ xavier_uniform_ ones_
    xavier_normal_ trunc_normal_ orthogonal_ eye_ dirac_ sparse_""".split()
)


def _writes_zero(event: Event) -> bool:
    if event.name in ("zeros_", "zero_"):
        return True
    args = [a for a in event.args if not (isinstance(a, Node) and a.op in ("param", "data", "detach"))]
    if event.name in ("constant_", "fill_", "mul_"):
        given = event.options.get("val", event.options.get("value", args[0] if args else None))
        return isinstance(given, int | float) and given == 0
    if event.name == "normal_":
        mean, std = (event.options.get(n, args[k] if len(args) > k else k) for k, n in enumerate(("mean", "std")))
        return all(isinstance(v, int | float) and v == 0 for v in (mean, std))
    if event.name == "copy_":
        return bool(args) and isinstance(args[0], Node) and args[0].op in ("zeros", "zeros_like")
    return False


def both_zero(run: Rehearsing) -> Iterator[Answer]:
    """Both matrices start at zero: the gradient of each is a multiple of the other."""
    starts = [e.serial for e in run.tape if e.name == "backward"]
    told: set[int] = set()
    for pair in pairs(run):
        made = max(pair.outer.serial, pair.inner.serial)
        start = next((s for s in starts if s > made), 1 << 60)
        if id(pair.outer) in told or not (pair.outer.trainable and pair.inner.trainable):
            continue
        if starts_at_zero(pair.outer, start) and starts_at_zero(pair.inner, start):
            told.add(id(pair.outer))
            places = [p for p in (_zeroed_at(pair.inner), _zeroed_at(pair.outer)) if p is not None]
            place = max(places, key=lambda p: getattr(p[0], "lineno", 0), default=pair.node.place)
            if place is not None:
                text = "both matrices of this product start at zero: neither ever gets a gradient"
                yield Answer(place, text, tuple(p for p in (*places, pair.node.place) if p is not None and p != place))
                return


def _zeroed_at(param: Node) -> Place | None:
    writes = [e for e in param.writes if e.name in _FILLS and e.place is not None]
    return writes[-1].place if writes else param.place


# ---------------------------------------------------------------------- part of the model or not
def unused(run: Rehearsing) -> Iterator[Answer]:
    """An adapter that is trained by an optimizer, and that no loss is computed with."""
    lost = _lost(run)
    if not lost:
        return
    if any(e.name in ("register_forward_hook", "register_forward_pre_hook") for e in run.tape):
        return
    ran, away = {id(e.subject) for e in run.tape if e.name == "forward"}, given_away(run)
    for obj in run.objects:
        if id(obj) in away or not is_module(obj) or obj.cls is None or obj.place is None:
            continue
        mine = {id(v): v for v in obj.attributes.values() if isinstance(v, Node) and v.op == "param"}
        for inner in obj.attributes.values():
            if isinstance(inner, Obj) and is_module(inner) and inner.cls is None:
                mine |= {id(p): p for p in run.parameters(inner)[0]}
        trained = mine.keys() & lost
        if not trained or not (_wraps(run, obj) or NAMED.search(obj.cls.name)):
            continue
        if any(p.trainable is not False and k not in lost and not _frozen_part(p) for k, p in mine.items()):
            continue
        if id(obj) not in ran:
            text = "this adapter is trained, and the network is run without it"
            place = _left_out(run, obj)
            yield Answer(place or obj.place, text, (obj.place,) if place is not None else ())
            return
        mine = {key: param for key, param in mine.items() if key in trained}
        users_of = [n for n in run.nodes if n.place and any(isinstance(i, Node) and id(i) in mine for i in n.inputs)]
        forward = obj.cls.find("forward")
        scope = forward.scope if isinstance(forward, Function) else None
        inside = [n for n in users_of if n.place is not None and n.place[1] is scope]
        asked = _never_entered(run, obj, mine) if not inside else None
        place = asked or ((inside or users_of)[-1].place if users_of else None)
        if place is not None:
            yield Answer(place, "what this adapter computes is not part of the loss", (obj.place,))
            return


def _never_entered(run: Rehearsing, obj: Obj, mine: dict[int, Node]) -> Place | None:
    """The branch of the adapter's forward that its matrices stand in, and that was never taken."""
    forward = obj.cls.find("forward") if obj.cls is not None else None
    names = {k for k, v in obj.attributes.items() if isinstance(v, Node) and id(v) in mine}
    if not isinstance(forward, Function):
        return None
    for node in ast.walk(forward.node):
        if isinstance(node, ast.If):
            read = {n.attr for s in node.body for n in ast.walk(s) if isinstance(n, ast.Attribute)}
            if names & read:
                return _switched_off(obj, node.test) or (node.test, forward.scope)
    return None


def _switched_off(obj: Obj, test: ast.expr) -> Place | None:
    """Where the flag that the branch asks for is set to False, where that is done once."""
    name = test.attr if isinstance(test, ast.Attribute) else ""
    owner = obj.cls.scope if obj.cls is not None and name else None
    bound = owner.attributes.get(name, []) if owner is not None else []
    off = [b for b in bound if isinstance(b.value, ast.Constant) and b.value.value is False]
    return (off[0].node, off[0].scope) if len(bound) == len(off) == 1 else None


def discarded(run: Rehearsing) -> Iterator[Answer]:
    """An adapter is made around a layer of the network, and what was made is used nowhere."""
    if not steps(run) or any(e.name in ("register_forward_hook", "register_forward_pre_hook") for e in run.tape):
        return
    ran = {id(e.subject) for e in run.tape if e.name == "forward"}
    kept = {id(v) for o in run.objects for v in o.attributes.values() if isinstance(v, Obj)}
    for obj in run.objects:
        made = is_module(obj) and obj.cls is not None and id(obj) not in ran and id(obj) not in kept
        if not made or obj.place is None or not _wraps(run, obj):
            continue
        given = [v for v in (*obj.args, *obj.options.values()) if isinstance(v, Obj) and is_module(v)]
        if any(id(g) in ran for g in given) and _read_nowhere(run, obj.place):
            yield Answer(obj.place, "the adapter that is made here is put nowhere: the layer stays as it was")
            return


def _read_nowhere(run: Rehearsing, place: Place) -> bool:
    """True for ``name = Adapter(...)`` where nothing behind it reads the name."""
    made = next((a for a in run.project.ancestors(*place) if isinstance(a, ast.stmt)), None)
    if not isinstance(made, ast.Assign) or made.value is not place[0]:
        return False
    names = {t.id for t in made.targets if isinstance(t, ast.Name)}
    read = (n for n in ast.walk(place[1].node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return len(names) == len(made.targets) and not any(n.id in names and n.lineno > made.lineno for n in read)


def _left_out(run: Rehearsing, adapter: Obj) -> Place | None:
    """Of an adapter that the network itself holds: where the network runs the layers beside it."""
    ran = {id(e.subject) for e in run.tape if e.name == "forward"}
    for holder in run.objects:
        forward = holder.cls.find("forward") if holder.cls is not None and is_module(holder) else None
        if not isinstance(forward, Function) or holder is adapter or id(holder) not in ran:
            continue
        inside = [v for v in holder.attributes.values() if isinstance(v, Obj)]
        held_here = any(v is adapter or any(i is adapter for i in v.attributes.values()) for v in inside)
        if not held_here:
            continue
        calls = [e for e in run.tape if e.name == "forward" and e.place is not None and e.place[1] is forward.scope]
        looped = [e for e in calls if e.turns and e.turns[-1].scope is forward.scope]
        if looped or calls:
            return (looped or calls)[-1].place
    return None


def _frozen_part(param: Node) -> bool:
    return param.trainable is False


def _wraps(run: Rehearsing, obj: Obj) -> bool:
    """True for a module that was given another one whose layers are run elsewhere."""
    given = [v for v in (*obj.args, *obj.options.values()) if isinstance(v, Obj) and is_module(v)]
    return bool(given) and any(v is g for v in obj.attributes.values() for g in given)


def _lost(run: Rehearsing) -> set[int]:
    """Trainable parameters of optimizers that no backward reaches."""
    mine = {id(p) for e in steps(run) for p in held(e) if p.trainable is not False}
    reached: set[int] = set()
    for event in run.tape:
        if event.name == "grad":
            return set()
        if event.name == "backward":
            if any(n.grad and unknown(n) for n in ancestors(event.subject, through=lambda n: n.grad)):
                return set()
            reached |= {id(p) for p in event.state.get("reached", [])}
    return mine - reached


def frozen(run: Rehearsing) -> Iterator[Answer]:
    """An adapter is run in the training, and its matrices take no gradient."""
    last = next((e for e in reversed(run.tape) if e.name == "backward"), None)
    if last is None or not steps(run):
        return
    used = {id(n) for n in ancestors(last.subject)}
    frozen_pairs = []
    for pair in pairs(run):
        if id(pair.node) not in used or not _added(run, pair):
            continue
        if pair.outer.trainable is not False or pair.inner.trainable is not False:
            return
        frozen_pairs.append(pair)
    for pair in frozen_pairs:
        if not _small(pair):
            continue
        event = next((e for e in reversed(pair.outer.writes) if e.name == "requires_grad"), None)
        if event is not None and event.place is not None and event.serial < last.serial:
            text = "this freezes the matrices of the adapter too: nothing of it learns"
            yield Answer(event.place, text, (pair.node.place,) if pair.node.place is not None else ())
            return


def _small(pair: Pair) -> bool:
    """True for matrices that the program made itself for an adapter: one starts at zero."""
    return starts_at_zero(pair.outer) or starts_at_zero(pair.inner)


def _added(run: Rehearsing, pair: Pair) -> bool:
    from trainwreck.code.rehearsal.questions.roles import users

    table = users(run)
    at = [pair.node]
    for _ in range(6):
        following = [u for n in at for u in table.get(id(n), ())]
        if any(u.op == "add" for u in following):
            return True
        at = [u for u in following if u.op in PASSES | {"mul", "div"}]
    return False
