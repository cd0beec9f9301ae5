"""Averages of weights: what share of the old one each update keeps, and targets that are never moved."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import losses_of, number_of

SWAPPED = 0.2
"""A share of the old average below this is no average. Published decays are 0.9 to 0.9999."""
SLIGHT = 1e-6


def swapped(run: Rehearsing) -> Iterator[Answer]:
    """The average keeps little of its old value, or the two shares do not add up to one."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op != "param" or not node.writes:
            continue
        for kept, new, place in settled(node):
            if id(place[0]) in told:
                continue
            told.add(id(place[0]))
            if kept + new != 0 and abs(kept + new - 1) > SLIGHT and new and kept > 0:
                yield Answer(place, f"the shares of the average are {kept:g} and {new:g}: not one", (place,))
            elif 0 <= kept < SWAPPED and 0.5 < new < 1:
                text = f"the average keeps {kept:g} of its old value at each update: the two shares are swapped"
                yield Answer(_source(run, place), text, (place,))


def settled(param: Node) -> Iterator[tuple[float, float, Place]]:
    """The updates whose shares are the same at every turn: a decay that is warmed up starts small."""
    found: dict[int, list[tuple[float, float, Place]]] = {}
    for update in updates(param):
        found.setdefault(id(update[2][0]), []).append(update)
    for same in found.values():
        at = same[0][2][0]
        times = sum(e.place is not None and e.place[0] is at and e.name not in ("mul_",) for e in param.writes)
        if len(same) == times and (len({u[:2] for u in same}) == 1 or _warmed_up(param, at)):
            yield same[-1]


def _warmed_up(param: Node, at: ast.AST) -> bool:
    """True where the share is the lesser of a constant and a number that grows: after the start it is the constant."""
    events = [e for e in param.writes if e.place is not None and e.place[0] is at]
    values = [v for e in events for v in (*e.args, *e.options.values())]
    return any(isinstance(v, Node) and number_of(v) is None and eventually(v) is not None for v in values)


def updates(param: Node) -> Iterator[tuple[float, float, Place]]:
    """The shares of the old and of the new value at each update in a loop over parameters."""
    scaled: float | None = None
    for event in param.writes:
        if event.place is None or not event.turns:
            continue
        args = list(event.args)
        if event.name == "lerp_" and len(args) > 1 and (share := eventually(args[1])) is not None:
            if _weights(args[0], param):
                yield 1 - share, share, event.place
        elif event.name == "mul_" and args:
            scaled = eventually(args[0])
        elif event.name == "add_" and args and scaled is not None:
            share = eventually(event.options.get("alpha", 1.0))
            value, factor = _factor(args[0])
            if share is not None and factor is not None and _weights(value, param):
                yield scaled, share * factor, event.place
            scaled = None
        elif event.name in ("copy_", "inplace") and args:
            value = args[0]
            shares = _shares(value, param) if isinstance(value, Node) else None
            if shares is not None:
                yield *shares, event.place


def _factor(value: Value) -> tuple[Value, float | None]:
    if isinstance(value, Node) and value.op == "mul" and len(value.inputs) > 1:
        for number, rest in ((value.inputs[1], value.inputs[0]), (value.inputs[0], value.inputs[1])):
            if (known := eventually(number)) is not None:
                return rest, known
        return value, None
    return value, 1.0


def eventually(value: Value, depth: int = 0) -> float | None:
    """A number; of a decay that is warmed up (``min(0.99, (1 + n) / (10 + n))``) the one that it ends at."""
    known = number_of(value)
    if known is not None or not isinstance(value, Node) or depth > 6:
        return known
    if value.op in ("min", "max") and value.full.startswith("builtins."):
        numbers = [n for i in value.inputs if (n := number_of(i)) is not None]
        return numbers[0] if len(numbers) == 1 and len(value.inputs) == 2 and 0 < numbers[0] < 1 else None
    if value.op == "sub" and len(value.inputs) > 1:
        one, other = number_of(value.inputs[0]), eventually(value.inputs[1], depth + 1)
        return one - other if one is not None and other is not None else None
    return None


def _weights(value: Value, own: Node) -> bool:
    """True for the parameter of another network."""
    node = value
    for _ in range(6):
        if not isinstance(node, Node):
            return False
        if node.op == "param":
            return node is not own
        if node.op not in STRUCTURE and node.op != "loaded":
            return False
        node = node.inputs[0] if node.inputs else None
    return False


def _is(value: Value, own: Node) -> bool:
    return isinstance(value, Node) and any(n is own for n in near(value, 6))


def _shares(value: Node, own: Node) -> tuple[float, float] | None:
    """Of ``a * old + b * new``."""
    if value.op == "lerp" and len(value.inputs) > 2 and (share := number_of(value.inputs[2])) is not None:
        if _weights(value.inputs[0], own) and _is(value.inputs[1], own):
            return share, 1 - share  # ``new.lerp(old, decay)``
        return 1 - share, share
    if value.op != "add" or len(value.inputs) < 2:
        return None
    kept = new = 0.0
    for item in value.inputs[:2]:
        inner, factor = _factor(item)
        if factor is None:
            return None
        if _weights(inner, own):
            new += factor
        elif _is(inner, own):
            kept += factor
        else:
            return None
    return kept, new


def _source(run: Rehearsing, place: Place) -> Place:
    """Where the number of the update is written down."""
    from trainwreck.code.bounds import origin

    node, scope = place
    if not isinstance(node, ast.Call) or len(node.args) < 1:
        return place
    share = node.args[1] if len(node.args) > 1 else None
    for keyword in node.keywords:
        if keyword.arg in ("alpha", "weight"):
            share = keyword.value
    if not isinstance(share, ast.BinOp):
        return place  # a decay where its complement is meant
    while isinstance(share, ast.BinOp) and isinstance(share.left, ast.Constant):
        share = share.right
    if not isinstance(share, ast.Name | ast.Attribute | ast.Subscript):
        return place
    written = origin(run.project, share, scope)
    name = getattr(share, "attr", getattr(share, "id", ""))
    number = getattr(written[0], "value", None)
    if isinstance(number, float) and (SMALL if number < 0.5 else LARGE).search(name):
        return place  # the number is what its name says, and stands on the wrong side
    return written


SMALL = pattern(r"tau|rate|eta\b|alpha|step|speed|mix|blend", re.IGNORECASE)
LARGE = pattern(r"decay|momentum|polyak|rho|keep|retain|ema", re.IGNORECASE)


def never_moved(run: Rehearsing) -> Iterator[Answer]:
    """A copy of the network that is bootstrapped from, and never set to the network again."""
    for event, found in losses_of(run):
        if not event.turns:
            continue
        for term in found:
            for node in ancestors(term.node):
                copy = _copy(run, node) if node.op == "mul" and not node.grad and _discounted(node) else None
                if copy is None or copy.place is None or copy.copy_of is None:
                    continue
                params, _ = run.parameters(copy)
                moved = any(e.serial > copy.serial and e.turns for p in params for e in p.writes
                            if e.name != "requires_grad")  # fmt: skip
                trained = {id(p) for e in steps(run) for p in e.state.get("held", [])}
                known = any(id(p) in trained for p in run.parameters(copy.copy_of)[0])
                again = any(o is not copy and o.copy_of is copy.copy_of and o.turns for o in run.objects)
                if not moved and not again and known and not any(_touches(e, copy) for e in run.tape):
                    text = "this copy is bootstrapped from and never set to the network again"
                    yield Answer(copy.place, text, (event.place,) if event.place is not None else ())
                    return


def _touches(event: Event, copy: Obj) -> bool:
    return (
        event.serial > copy.serial
        and bool(event.turns)
        and (
            (event.name in ("load_state_dict", "update_parameters", "set") and event.subject is copy)
            or (any(a is copy for a in event.args) and event.name not in ("forward", "print", "set"))
        )
    )


def _discounted(node: Node) -> bool:
    """``0.99 * value``: bootstrapping."""
    numbers = [number_of(i) for i in node.inputs[:2]]
    return any(n is not None and 0.8 <= n < 1 for n in numbers)


def _copy(run: Rehearsing, node: Node) -> Obj | None:
    # log-probabilities of a reference are a leash, not a value
    weights = ancestors(node, through=lambda n: n.op not in ("param", "log_softmax", "logsigmoid", "log_prob"))
    behind = {id(n) for n in weights if n.op == "param"}
    for obj in run.objects:
        if is_module(obj) and obj.copy_of is not None and is_module(obj.copy_of):
            mine = {id(p) for p in run.parameters(obj)[0]}
            if mine and mine <= behind:
                return obj
    return None
