"""Values of actions: of which state the best action is chosen, and how far ahead the value lies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.asked_states import states
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.returns import BACKWARDS
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core, trained
from trainwreck.code.rehearsal.questions.targets import KEPT, fits
from trainwreck.code.rehearsal.questions.terms import number_of

PICKS = frozenset(["gather", "take_along_dim", "getitem"])
CLOSE = 1e-9


def chosen_elsewhere(run: Rehearsing) -> Iterator[Answer]:
    """The action whose value is taken in the next state is the best one of another state."""
    for one in fits(run):
        for node in [*core(one.found.value), one.found.value]:
            for pick in ancestors(node, through=lambda n: n.op in STRUCTURE or n.op in PICKS):
                rest = [i for i in (*pick.inputs[1:], *pick.options.values()) if isinstance(i, Node)]
                chosen = [n for i in rest for n in (i, *core(i)) if n.op == "argmax"] if pick.op in PICKS else []
                if not chosen or not isinstance(pick.inputs[0], Node):
                    continue
                here, there = states(pick.inputs[0]), states(chosen[0])
                own = states(one.output)
                if here and there and not here & there and there == own and chosen[0].place is not None:
                    text = "the best action of the state before is chosen here, and valued in the next state"
                    yield Answer(chosen[0].place, text, (pick.place,) if pick.place is not None else ())
                    return


def one_step_for_several(run: Rehearsing) -> Iterator[Answer]:
    """Rewards of several steps are summed up with the discount, and what follows them is discounted for one step."""
    for one in fits(run):
        found = one.found
        if len(found.numbers) != 1 or found.product.place is None:
            continue
        discount = found.numbers[0]
        for node in ancestors(found.reward, through=lambda n: n.op in KEPT):
            if node.op == "add" and _several(node, discount) and not _power(found.product):
                text = "the rewards of several steps are in the target, and the value behind them is discounted once"
                yield Answer(found.product.place, text, (node.place,) if node.place is not None else ())
                return


def summed_forwards(run: Rehearsing) -> Iterator[Answer]:
    """The rewards of the next steps are summed up from the first on: the last one counts most, the first one least."""
    for one in fits(run):
        for node in ancestors(one.found.reward, through=lambda n: n.op in KEPT):
            turn = node.turns[-1] if node.turns else None
            if node.op != "add" or turn is None or not isinstance(turn.node, ast.For):
                continue
            text = ast.unparse(turn.node.iter)
            walked = turn.scope.module.text
            forwards = not BACKWARDS.search(text) and not any(w in walked for w in ("appendleft", "insert(0"))
            if forwards and _named(turn.node.iter) and any(_several(node, d) for d in _discounts(node)):
                told = (
                    "each turn discounts what was summed up before: the rewards are to be gone through from the last on"
                )
                yield Answer((turn.node.iter, turn.scope), told, (node.place,) if node.place is not None else ())
                return


def _named(over: ast.expr) -> bool:
    """True for a list as it is, or some of it from its start."""
    return isinstance(over, ast.Name | ast.Attribute)


def _discounts(node: Node) -> list[float]:
    products = [i for i in node.inputs[:2] if isinstance(i, Node) and i.op == "mul"]
    return [n for p in products for i in p.inputs[:2] if (n := number_of(i)) is not None]


def _several(node: Node, discount: float) -> bool:
    """``reward + discount * (the same of a later step)``."""
    for item in node.inputs[:2]:
        if not isinstance(item, Node) or item.op != "mul" or discount >= 1:
            continue
        numbers = [n for i in item.inputs[:2] if (n := number_of(i)) is not None]
        inner = [c for i in item.inputs[:2] for c in candidates(i) if isinstance(c, Node)]
        again = any(c.op == "add" and c.place is not None and node.place is not None and c.place[0] is node.place[0]
                    for c in inner)  # fmt: skip
        if again and len(numbers) == 1 and abs(numbers[0] - discount) < CLOSE:
            return True
    return False


def _power(product: Node) -> bool:
    """True where the discount of the product is a power that was kept with the steps."""
    return any(n.op == "pow" for n in ancestors(product, through=lambda n: n.op in KEPT or n.op == "mul"))


def centred_over_all(run: Rehearsing) -> Iterator[Answer]:
    """A value of the state and advantages of the actions, of which the mean over samples too is taken off."""
    for node in trained(run):
        if node.op != "sub" or len(node.inputs) < 2 or node.place is None:
            continue
        first, mean = node.inputs[:2]
        of = mean.inputs[0] if isinstance(mean, Node) and mean.op == "mean" and mean.inputs else None
        if not isinstance(of, Node) or not isinstance(mean, Node) or not isinstance(first, Node):
            continue
        if of.shape.open or len(of.shape.dims) != 2 or of.shape.dims[1] in (1, None) or not _alone(mean):
            continue
        values = [i for i in first.inputs[:2] if isinstance(i, Node)] if first.op == "add" else []
        others = [v for v in values if v is not of]
        state = len(values) == 2 and len(others) == 1 and others[0].shape.dims[-1:] == (1,)
        if state and all(any(n.op == "linear" for n in core(v)) for v in values):
            text = "the mean over all samples and actions is taken off: that of each sample's actions is meant"
            yield Answer(node.place, text, (mean.place,) if mean.place is not None else ())
            return


def _alone(mean: Node) -> bool:
    """True for a mean over everything."""
    return not mean.shape.open and not mean.shape.dims and along(mean) is None and len(list(parts(mean.inputs))) == 1
