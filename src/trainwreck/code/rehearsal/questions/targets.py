"""What a value is trained towards: the reward, and the discounted value of the state that follows."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value, candidates
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.asked_states import CUTS
from trainwreck.code.rehearsal.questions.flags import Flag, ends, flags, key_of, over, timed
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE
from trainwreck.code.rehearsal.questions.terms import losses_of, number_of
from trainwreck.core.row import Row

LEAST_DISCOUNT = 0.5
"""Discounts lie between 0.9 and 1 (Sutton and Barto, section 3.3); below a half something else is meant."""
CHOOSES = STRUCTURE | frozenset(
    "where setitem masked_fill mul add sub div neg either min max minimum maximum mean sum part clamp stack cat "
    "array asarray as_tensor from_numpy float_value nan_to_num amax amin".split()
)


class Bootstrap(Row):
    """``reward + discount * factors * value``: ``node`` is the sum, ``product`` its second term."""

    node: Node
    reward: Value
    product: Node
    numbers: tuple[float, ...]
    factors: tuple[Node, ...]
    value: Node


class Fitted(Row):
    """A bootstrap that a loss compares with the output of a network."""

    event: Event
    output: Node
    target: Node
    found: Bootstrap
    sign: int
    """That of the error in the loss."""
    error: Node


def bootstraps(run: Rehearsing) -> list[Bootstrap]:
    """The sums of a reward and a discounted value, in order."""
    if "bootstraps" not in run.memo:
        made: list[Bootstrap] = []
        inside: set[int] = set()
        for node in run.nodes:
            one = _bootstrap(node, inside) if node.op == "add" else None
            if one is not None:
                made.append(one)
                inside.add(id(node))
        run.memo["bootstraps"] = made
    found: list[Bootstrap] = run.memo["bootstraps"]
    return found


def _bootstrap(node: Node, inside: set[int]) -> Bootstrap | None:
    if len(node.inputs) < 2:
        return None
    for reward, rest in (node.inputs[:2], node.inputs[1::-1]):
        if not isinstance(reward, Node) or not isinstance(rest, Node) or rest.op not in ("mul", "getitem", "sub"):
            continue
        rest_ = rest.inputs[0] if rest.op == "sub" else rest  # reward + discount * next - value
        if not isinstance(rest_, Node) or rest_.op != "mul":
            continue
        numbers, factors = _factors(rest_)
        if not numbers or not all(LEAST_DISCOUNT < n <= 1 for n in numbers) or len(numbers) > 2:
            continue
        if _averages(node, reward, numbers):
            continue
        values = [f for f in factors if is_value(f)]
        if len(values) == 1 and _is_reward(reward, inside):
            others = tuple(f for f in factors if f is not values[0])
            return Bootstrap(node, reward, rest_, numbers, others, values[0])
    return None


def _averages(node: Node, other: Node, numbers: tuple[float, ...]) -> bool:
    """True for ``0.99 * old + 0.01 * new``: a running average, of weights mostly."""
    share = _factors(other)[0] if "alpha" not in node.options else (number_of(node.options["alpha"]) or 0.0,)
    return bool(share) and abs(math.prod(numbers) + math.prod(share) - 1) < 1e-6


def _factors(value: Value, depth: int = 0) -> tuple[tuple[float, ...], tuple[Node, ...]]:
    known = number_of(value)
    known = _kept_discount(value) if known is None else known
    if known is not None:
        return (known,), ()
    if isinstance(value, Node) and value.op == "mul" and len(value.inputs) > 1 and depth < 8:
        one, other = _factors(value.inputs[0], depth + 1), _factors(value.inputs[1], depth + 1)
        return one[0] + other[0], one[1] + other[1]
    return (), (value,) if isinstance(value, Node) else ()


def _kept_discount(value: Value) -> float | None:
    """The discount whose power was put aside with each step: ``gamma ** steps``."""
    at = value
    for _ in range(WAY):
        if isinstance(at, Node) and at.op == "pow" and len(at.inputs) > 1:
            base = number_of(at.inputs[0])
            counted = isinstance(at.inputs[1], Node | int)
            return base if base is not None and LEAST_DISCOUNT < base < 1 and counted else None
        if not isinstance(at, Node) or at.op not in KEPT or not at.inputs:
            return None
        at = next(iter(parts(at.inputs[:1])), None)
    return None


WAY = 12
KEPT = STRUCTURE | {"stack", "either", "array", "asarray", "float32", "float64", "float", "batch", "part"}
"""What a number goes through on its way into a batch."""


def is_value(node: Node) -> bool:
    """True for what a network says of a state: its layers stand behind it, with nothing but arithmetic between."""
    return any(n.op in RAW or n.op in ("param", "embedding") for n in ancestors(node, through=chooses))


def _is_reward(node: Node, inside: set[int]) -> bool:
    """``inside``: sums that are bootstraps themselves; what holds one is no reward."""
    if any(id(n) in inside for n in ancestors(node, through=_sums)):
        return False
    return not any(n.op == "param" for n in ancestors(node, through=lambda n: n.op not in CUTS and n.op != "rsample"))


def _sums(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("add", "sub", "either", "part", "setitem")


def fits(run: Rehearsing) -> list[Fitted]:
    """The bootstraps that stand behind the target of a loss."""
    if "bootstrap-fits" not in run.memo:
        by_id = {id(b.node): b for b in bootstraps(run)}
        made: list[Fitted] = []
        for event, found in losses_of(run) if by_id else ():
            for term in found:
                pair = _sides(term.node)
                if pair is None:
                    continue
                for output, target in (pair, pair[::-1]):
                    inside = [by_id[id(n)] for n in ancestors(target, through=_outside_layers) if id(n) in by_id]
                    if inside and is_value(output):
                        made.append(Fitted(event, output, target, inside[0], term.sign, term.node))
                        break
        run.memo["bootstrap-fits"] = made
    kept: list[Fitted] = run.memo["bootstrap-fits"]
    return kept


def _sides(node: Node) -> tuple[Node, Node] | None:
    from trainwreck.code.rehearsal.questions.terms import squared_error

    return squared_error(node)


def _outside_layers(node: Node) -> bool:
    return node.op not in RAW and node.op not in ("embedding", "param")


def chooses(node: Node) -> bool:
    return node.op in CHOOSES


def error_raised(run: Rehearsing) -> Iterator[Answer]:
    """The distance from the target is taken off the loss: the critic moves away from it."""
    for event, found in losses_of(run):
        errors = {id(one.error) for one in fits(run) if one.event is event and one.sign < 0}
        for term in found:
            if id(term.node) not in errors:
                continue
            signs = [n for n in term.path if n.op in ("sub", "neg") and n.place is not None]
            place = signs[-1].place if signs else term.node.place
            if place is not None:
                yield Answer(place, "the critic's error is taken off the loss: it moves away from its target")
                return


# ---------------------------------------------------------------------- the end of an episode
def end_turned(run: Rehearsing) -> Iterator[Answer]:
    """The value that follows counts where the episode is over, and is left out where it goes on."""
    told: set[int] = set()
    for found in bootstraps(run):
        for factor in found.factors:
            held = [(f, over(run, f)) for f in flags(factor)]
            if not held or not all(end for _, end in held):
                continue
            place = _turned_at(found, factor, [f for f, _ in held])
            if place is not None and id(place[0]) not in told:
                told.add(id(place[0]))
                text = "this keeps the value of what follows where the episode is over, and drops it where it goes on"
                yield Answer(place, text, tuple(p for p in (found.node.place,) if p is not None))


def _turned_at(found: Bootstrap, factor: Node, held: list[Flag]) -> Place | None:
    """The turn that is one too many; where there is none, the product in which ``1 - done`` is missing."""
    via = next((f.via for f in held if f.via is not None), None)
    if via is not None and via.place is not None:
        return via.place
    here = found.product.place
    handed = here is not None and factor.place is not None and factor.place[1] is not here[1]
    if handed and factor.op in STRUCTURE and here is not None and _speaks_of_life(here):
        return factor.place  # it was handed over as what it is not
    return here


ALIVE = pattern(r"alive|not_?done|non_?(term|final|done)|mask|contin|live|going|valid|undone|^nd$", re.IGNORECASE)


def _speaks_of_life(place: Place) -> bool:
    """True where a product names its factor as something that is set while the episode goes on."""
    names = (n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for n in ast.walk(place[0]))
    return any(ALIVE.search(name) for name in names)


def end_missing(run: Rehearsing) -> Iterator[Answer]:
    """The end of an episode is kept for the update, and nothing of it is left in the target."""
    known = ends(run)
    final = {id(n) for n in run.nodes if key_of(n) in known and not timed(n)}
    if not final or not _kept(run, final):
        return
    rewards = {id(b.reward) for b in bootstraps(run)}
    told: set[int] = set()
    for one in fits(run):
        inner = [n for n in ancestors(one.target, through=_beside(rewards)) if id(n) not in rewards]
        if any(n.op in OPAQUE or flags(n) for n in inner) or _recursive(one.found):
            continue
        if one.found.factors:
            continue  # another factor beside the discount: the flag, in a way that is not followed, or a weight
        place = one.found.product.place
        if any(n.op in ("masked_fill", "where", "setitem_mask") for n in inner) or place is None:
            continue
        if id(place[0]) not in told:
            told.add(id(place[0]))
            text = "the value of what follows is added where the episode is over too: 1 - done is missing"
            yield Answer(place, text, tuple(p for p in (one.event.place,) if p is not None))


def _recursive(found: Bootstrap) -> bool:
    """True for a return that is summed up from the last step on: another question is asked of those."""
    at = found.node.place
    return at is not None and any(
        isinstance(c, Node) and c.place is not None and c.place[0] is at[0] for c in candidates(found.value)
    )


def _beside(rewards: set[int]) -> Callable[[Node], bool]:
    return lambda node: (chooses(node) or node.op == "tolist") and id(node) not in rewards


def _kept(run: Rehearsing, final: set[int]) -> bool:
    """True where a flag is put aside together with what else an update needs."""
    for event in run.tape:
        if event.name in ("append", "add", "put", "appendleft", "extend", "insert") and event.args:
            held = [n for a in event.args for n in _held(a)]
            if any(_among(f.source, final) for n in held for f in flags(n)):
                return True
    return any(
        n.op == "setitem" and len(n.inputs) > 1 and any(_among(f.source, final) for f in flags(n.inputs[1]))
        for n in run.nodes
    )


def _among(source: Node, final: set[int]) -> bool:
    """True for one of these truths, or one that holds where it does."""
    sides = source.inputs[:2] if source.op in ("or", "logical_or", "bitwise_or") else ()
    return id(source) in final or any(id(f.source) in final for i in sides for f in flags(i))


def _held(value: Value) -> Iterator[Node]:
    attributes = getattr(value, "attributes", None)
    if not isinstance(value, Node) and isinstance(attributes, dict):
        for item in attributes.values():
            yield from parts(item)
    else:
        yield from parts(value)


# ---------------------------------------------------------------------- the discount
def discounted_twice(run: Rehearsing) -> Iterator[Answer]:
    """The value that follows is multiplied by the same discount again."""
    for one in bootstraps(run):
        outer = [n for n in one.numbers if LEAST_DISCOUNT < n < 1]
        if not outer:
            continue
        if len(outer) > 1 and outer[0] == outer[1]:
            within = ancestors(one.product, through=lambda n: n.op == "mul")
            made = [n for n in within if n.op == "mul" and any(number_of(i) == outer[0] for i in n.inputs[:2])]
            if made and (place := made[-1].place) is not None:
                yield Answer(place, "the value of what follows is discounted twice: here, and in the same product")
                return
        for node in _inner_products(one.value):
            if any(number_of(i) == outer[0] for i in node.inputs[:2]) and node.place is not None:
                text = "the value of what follows is discounted here, and again in the sum with the reward"
                yield Answer(node.place, text, (one.product.place,) if one.product.place is not None else ())
                return


def _inner_products(value: Node) -> Iterator[Node]:
    """The products that a value is one factor of, with no other sum between."""
    at: list[Node] = [value]
    for _ in range(40):
        if not at:
            return
        node = at.pop()
        if node.op == "mul":
            yield node
        if node.op in STRUCTURE | {"mul", "min", "max", "minimum", "maximum", "either"}:
            at += [n for i in node.inputs[:2] for n in parts(i) if any(m.op == "param" for m in near(n, 400))]


def reward_discounted(run: Rehearsing) -> Iterator[Answer]:
    """The discount stands around the reward and the value, not before the value alone."""
    for event, found in losses_of(run):
        for term in found:
            pair = _sides(term.node)
            for target in pair or ():
                for node in ancestors(target, through=_outside_sums):
                    if node.op == "mul" and len(node.inputs) > 1 and node.place is not None and _whole(node):
                        text = "the reward is discounted as well: only the value of what follows is"
                        yield Answer(node.place, text, (event.place,) if event.place is not None else ())
                        return


def _outside_sums(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("either", "part")


def _whole(node: Node) -> bool:
    for number, inner in (node.inputs[:2], node.inputs[1::-1]):
        factor = number_of(number)
        if factor is None or not 0.8 <= factor < 1 or not isinstance(inner, Node) or inner.op != "add":
            continue
        for reward, rest in (inner.inputs[:2], inner.inputs[1::-1]):
            if not isinstance(reward, Node) or not isinstance(rest, Node) or not _is_reward(reward, set()):
                continue
            numbers, factors = _factors(rest)
            if not numbers and any(is_value(f) for f in factors) and not rest.grad and _data(reward):
                return True
    return False


def _data(node: Node) -> bool:
    return not any(n.op in OPAQUE for n in near(node, 30)) and not any(
        isinstance(c, int | float) for c in candidates(node)
    )


__all__ = [
    "bootstraps",
    "discounted_twice",
    "end_missing",
    "end_turned",
    "error_raised",
    "fits",
    "is_value",
    "reward_discounted",
]
