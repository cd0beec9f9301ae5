"""Returns and advantages: the order of discounting, deviations that are zero, groups without a difference."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.bounds import origin
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.policy import surrogates
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import axes, number_of, terms, weighed_at

BACKWARDS = pattern(r"reversed\(|::\s*-1|-1,\s*-1\)|flip|, -1\)$")
"""How a loop from the last element to the first is written."""
DRAWN = frozenset("multinomial sample rsample bernoulli gumbel_softmax rand randn choice exponential".split())


def arithmetic(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in (
        "add", "sub", "mul", "div", "neg", "clamp", "stack", "cat", "tensor", "setitem", "element", "either", "part",
        "array", "asarray", "from_numpy", "loaded", "nan_to_num", "where",
    )  # fmt: skip


def discounted_past(run: Rehearsing) -> Iterator[Answer]:
    """Each return is gathered from the rewards before it: the loop goes from the first step to the last."""
    told: set[int] = set()
    for event, found in surrogates(run):
        behind = {id(n): n for n in ancestors(found.advantage)}
        for node in behind.values():
            if node.op != "add" or not node.turns or node.place is None or id(node.place[0]) in told:
                continue
            loop = node.turns[-1].node
            if not isinstance(loop, ast.For) or BACKWARDS.search(ast.unparse(loop.iter)):
                continue
            if _recursive(node) and _kept(run, node, loop) and not any(_turned(n) for n in ancestors(node)):
                told.add(id(node.place[0]))
                text = "this adds up what came before each step, where a return is what comes after it"
                far = getattr(node.place[0], "lineno", 0) - loop.lineno > 2
                place = (loop.iter, node.place[1]) if far else node.place  # what turns the loop round
                yield Answer(place, text, (event.place,) if event.place is not None else ())
                return


def summed_so_far(run: Rehearsing) -> Iterator[Answer]:
    """Returns are the running sums of the rewards, from the first step on: of what came before, not of what follows."""
    for event, found in surrogates(run):
        behind = list(ancestors(found.advantage, through=lambda n: n.op not in ("param", "embedding")))
        sums = [n for n in behind if n.op == "cumsum" and not n.grad and n.place is not None]
        if len({id(n.place[0]) for n in sums if n.place is not None}) != 1 or any(_turned(n) for n in behind):
            continue
        whole = sums[0]
        left = any(n.op == "sub" and len(n.inputs) > 1 and _holds(n.inputs[1], whole) for n in behind)
        picked = any(n.op in ("getitem", "flip", "gather") and n.inputs and n.inputs[0] is whole for n in behind)
        if not left and not picked and whole.place is not None and not _of_flags(whole):
            text = "the rewards are summed up from the first step on: a return is what follows a step"
            yield Answer(whole.place, text, (event.place,) if event.place is not None else ())
            return


def _holds(value: Value, inner: Node) -> bool:
    return any(n is inner for n in ancestors(value, through=lambda n: arithmetic(n) or n is inner))


def _of_flags(node: Node) -> bool:
    """True where truths are counted: how many episodes ended so far."""
    kinds = [n.op for n in ancestors(node, through=lambda n: n is node or n.op in STRUCTURE)]
    return any(k in ("eq", "ne", "lt", "gt", "le", "ge", "or", "and", "not", "invert") for k in kinds)


def _turned(node: Node) -> bool:
    """True for an array from its end to its beginning: going through that forwards is going back in time."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    first = index[0] if isinstance(index, tuple) and index else index
    turned = isinstance(first, Obj) and first.kind == "builtins.slice" and first.args[2:] == (-1,)
    return turned or node.op in ("flip", "flipud", "reversed")


def _recursive(node: Node) -> bool:
    """``x + 0.9 * (the same of the turn before)``, whatever else is multiplied."""
    for item in node.inputs[:2]:
        held = factors(item, 0)
        numbers = [n for f in held if (n := number_of(f)) is not None]
        if len(held) < 2 or not any(0.5 <= n < 1 for n in numbers):
            continue
        for inner in held:
            before = inner.inputs if isinstance(inner, Node) and inner.op in ("either", "counter") else (inner,)
            if any(isinstance(b, Node) and b.place is not None and node.place is not None
                   and b.place[0] is node.place[0] for b in before):  # fmt: skip
                return True
    return False


def factors(value: Value, depth: int) -> list[Value]:
    if isinstance(value, Node) and value.op == "mul" and len(value.inputs) > 1 and depth < 6:
        return [f for i in value.inputs[:2] for f in factors(i, depth + 1)]
    return [value]


def _kept(run: Rehearsing, node: Node, loop: ast.For) -> bool:
    """True where each turn's value is put aside in the same loop."""
    for event in run.tape:
        inside = any(t.node is loop for t in event.turns)
        if event.name == "append" and inside and any(p is node for a in event.args for p in parts(a)):
            return True
    return any(n.op == "setitem" and len(n.inputs) > 1 and n.inputs[1] is node for n in run.nodes)


def bare_deviation(run: Rehearsing) -> Iterator[Answer]:
    """An advantage is divided by a deviation that may be zero, with nothing that keeps it away from zero."""
    for event, found in surrogates(run):
        for node in ancestors(found.advantage, through=arithmetic):
            if node.op != "div" or len(node.inputs) < 2 or node.place is None:
                continue
            above, below = node.inputs[:2]
            if _deviation(below) and isinstance(above, Node) and _coarse(above):
                text = "equal rewards have a deviation of zero, and nothing is added to it here"
                yield Answer(node.place, text, (event.place,) if event.place is not None else ())
                return


def _deviation(value: Value) -> bool:
    for _ in range(6):
        if not isinstance(value, Node):
            return False
        if value.op == "std" or (value.op == "sqrt" and any(n.op == "var" for n in parts(value.inputs[:1]))):
            return True
        value = value.inputs[0] if value.op in STRUCTURE and value.inputs else None
    return False


def _coarse(value: Node) -> bool:
    """True for rewards of few values (flags, groups), which are often all equal."""
    near = list(ancestors(value, through=arithmetic))[:60]
    grouped = any(n.op in ("mean", "std") and axes(n) is not None for n in ancestors(value))
    return grouped or any(n.op in ("eq", "ne", "lt", "gt", "le", "ge", "float", "randint", "bool") for n in near)


def equal_groups(run: Rehearsing) -> Iterator[Answer]:
    """The answers of a group are compared with each other, and all are the same one."""
    for event, found in surrogates(run):
        for node in ancestors(found.advantage, through=arithmetic):
            if node.op != "sub" or len(node.inputs) < 2:
                continue
            mean = next((n for n in parts(node.inputs[1]) if n.op == "mean" and axes(n) is not None), None)
            if mean is None:
                continue
            behind = list(ancestors(node.inputs[0]))
            picked = next((n for n in behind if n.op == "argmax" and n.place is not None), None)
            copies = any(n.op in ("repeat", "expand", "repeat_interleave", "tile") for n in behind)
            if picked is not None and picked.place is not None and copies and not _random_after(behind, picked):
                text = "all answers of a group are the same most likely one: none is better than the group"
                yield Answer(picked.place, text, (event.place,) if event.place is not None else ())
                return


def _random_after(behind: list[Node], picked: Node) -> bool:
    inside = {id(n) for n in ancestors(picked)}
    return any(n.op in DRAWN for n in behind if id(n) not in inside or n.serial > picked.serial)


def one_answer(run: Rehearsing) -> Iterator[Answer]:
    """The answers of a group are compared with their mean, and a group has one answer."""
    for event, found in surrogates(run):
        for node in ancestors(found.advantage, through=arithmetic):
            if node.op != "sub" or len(node.inputs) < 2:
                continue
            mean = next((n for n in parts(node.inputs[1]) if n.op == "mean" and n.inputs), None)
            whole = mean.inputs[0] if mean is not None else None
            if mean is None or not isinstance(whole, Node) or whole is not node.inputs[0] or whole.op not in VIEWS:
                continue
            axis, dims = along(mean), whole.shape.dims
            known = isinstance(axis, int) and not whole.shape.open and -len(dims) <= axis < len(dims)
            if not known or dims[axis] != 1 or len(dims) < len(VIEWS):
                continue
            place = _number_of_answers(run, whole) or mean.place
            if place is not None:
                text = "a group has one answer, which is its own mean: all advantages are zero"
                yield Answer(place, text, tuple(p for p in (node.place, event.place) if p is not None))
                return


VIEWS = frozenset(["view", "reshape"])


def _number_of_answers(run: Rehearsing, whole: Node) -> Place | None:
    """Where the one that a table of groups is cut by is written."""
    at, scope = whole.place if whole.place is not None else (None, None)
    for side in at.args if isinstance(at, ast.Call) else ():
        known = isinstance(side, ast.Constant) or scope is None
        place = origin(run.project, side, scope) if not known and scope is not None else None
        if place is not None and isinstance(place[0], ast.Constant) and place[0].value == 1:
            return place
    return None


ORDINARY = 0.4
"""An entropy bonus beside standardised advantages weighs 0 to 0.1 (PPO, arXiv:1707.06347: 0.01); from here on the
gradient of the entropy is as large as that of the objective."""


def entropy_outweighs(run: Rehearsing) -> Iterator[Answer]:
    """The entropy of the policy counts as much as what it is paid for, whose advantages are standardised."""
    for event, found in surrogates(run):
        standard = any(n.op == "div" and len(n.inputs) > 1 and _standardises(n) for n in ancestors(found.advantage))
        weight = abs(found.term.weight)
        for term in terms(event.subject) if standard and weight and found.sign < 0 else ():
            inner = term.node.op == "entropy" and not term.factors
            if inner and term.sign < 0 and -term.weight > ORDINARY * weight and term.reductions[-1:] != ():
                means = all(n.op == "mean" for n in (*term.reductions, *found.term.reductions))
                place = weighed_at(run, term, ORDINARY) if means else None
                if place is not None:
                    text = f"the entropy counts {-term.weight / weight:g} times as much as standardised advantages"
                    yield Answer(place, text, tuple(p for p in (found.place, event.place) if p is not None))
                    return


def _standardises(node: Node) -> bool:
    """True for a division by a deviation, whatever is added to that."""
    below = node.inputs[1]
    sides = (
        [below, *below.inputs[:2]] if isinstance(below, Node) and below.op in ("add", "clamp", "maximum") else [below]
    )
    return any(_deviation(s) for s in sides)
