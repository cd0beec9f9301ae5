"""Policies that learn from rewards: signs, what the advantage hangs on, entropy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, External, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.paid import leash
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import REDUCED, Term, losses_of, number_of, parameters_behind, terms
from trainwreck.core.row import Row

COSTS = pattern(r"cost|loss|energy|penal|regret|nll|surprise|_len|length", re.IGNORECASE)
ARRAYS = STRUCTURE | frozenset(["stack", "cat", "tensor", "setitem", "array", "asarray", "loaded", "element", "either"])


class Surrogate(Row):
    """A term ``weight * logp * advantage`` of a loss; ``sign`` is that of the log-probability in the loss."""

    term: Term
    logp: Node
    advantage: Node
    sign: int
    place: Place


def surrogates(run: Rehearsing) -> list[tuple[Event, Surrogate]]:
    """The terms of losses in which a log-probability or a ratio meets an advantage."""
    if "surrogates" not in run.memo:
        found: list[tuple[Event, Surrogate]] = []
        for event, all_terms in losses_of(run):
            if _maximised(run, event):
                continue
            for term in all_terms:
                found += [(event, s) for s in _surrogate(term)]
        run.memo["surrogates"] = found
    kept: list[tuple[Event, Surrogate]] = run.memo["surrogates"]
    return kept


def _maximised(run: Rehearsing, event: Event) -> bool:
    return any(e.subject.get("maximize") not in (None, False) for e in steps(run))


def _surrogate(term: Term) -> Iterator[Surrogate]:
    node = term.node
    if node.op in ("minimum", "min", "maximum", "max") and len(node.inputs) >= 1:
        first = next(iter(parts(node.inputs[0])), None)
        if first is not None and term.sign:
            inner = terms(first)
            for one in inner[:1] if len(inner) == 1 else inner[:2]:
                yield from _surrogate(one._replace(weight=one.weight * term.weight, path=(*term.path, node, *one.path)))
        return
    pairs: list[tuple[Node, Node]] = [(node, f) for f in term.factors]
    if node.op == "mul" and len(node.inputs) >= 2:
        one, other = node.inputs[:2]
        if isinstance(one, Node) and isinstance(other, Node):
            pairs += [(one, other), (other, one)]
    below = {id(n.inputs[1]) for n in term.path if n.op == "div" and len(n.inputs) > 1}
    for policy, advantage in pairs:
        if id(advantage) in below:
            continue
        found = log_probability(policy)
        if found is None or advantage.op in ("option", "mask") or _is_mask(advantage) or _counts(advantage):
            continue
        logp, sign = found
        place = next((n.place for n in reversed(term.path) if n.op == "mul" and n.place is not None), node.place)
        if place is not None:
            yield Surrogate(term, logp, advantage, sign * term.sign, place)
            return


def _counts(node: Node) -> bool:
    """True for a number of turns: a counter, or what was added up from one."""
    made = near(node, 40)
    return any(n.op == "counter" for n in made) and all(n.op in ("counter", "add", "sub", "mul") for n in made)


def _is_mask(node: Node) -> bool:
    return any(n.op in TESTS for n in near(node, 4)) or _only_flags(node)


def _only_flags(node: Node, depth: int = 0) -> bool:
    """True for flags that were put together, or their shares: which steps belong to an episode."""
    if node.op in TESTS or node.op in ("and", "or", "not") or depth > DEPTH:
        return depth <= DEPTH
    if node.op in ("ones", "zeros"):
        kind = node.options.get("dtype")
        return isinstance(kind, External) and kind.name in ("bool", "bool_")
    if node.op not in ARRAYS | {"copy", "div"} or node.op == "setitem":
        return False
    held = [p for i in (node.inputs if node.op == "either" else node.inputs[:1]) for p in parts(i)]
    return bool(held) and all(_only_flags(h, depth + 1) for h in held)


TESTS = frozenset(["eq", "ne", "lt", "gt", "le", "ge", "invert"])
DEPTH = 12


def log_probability(node: Node, depth: int = 0) -> tuple[Node, int] | None:
    """The log-probability of actions that a value is, or that it rises with (a ratio), with its sign."""
    if depth > 14 or not node.grad:
        return None
    first = node.inputs[0] if node.inputs and isinstance(node.inputs[0], Node) else None
    if node.op in ("log_prob", "logits_to_log_prob"):
        return node, 1
    if node.op in ("cross_entropy", "nll_loss"):
        return node, -1
    if node.op in ("log_softmax", "logsigmoid"):
        return node, 1
    if node.op == "log" and first is not None and any(n.op in ("softmax", "sigmoid") for n in near(first, 8)):
        return node, 1
    if node.op in ("stack", "cat") and node.inputs and first is None:
        held = list(parts(node.inputs[0]))
        return log_probability(held[0], depth + 1) if held else None
    if first is None:
        return None
    if node.op == "exp":
        inner = first
        if inner.op == "sub" and inner.inputs and isinstance(inner.inputs[0], Node):
            return log_probability(inner.inputs[0], depth + 1)
        return None
    if node.op in STRUCTURE or node.op in ("sum", "mean", "clamp", "either"):
        return log_probability(first, depth + 1)
    if node.op == "neg":
        found = log_probability(first, depth + 1)
        return (found[0], -found[1]) if found else None
    return None


def _first(value: Value) -> Node | None:
    return next(iter(parts(value)), None)


# ---------------------------------------------------------------------- signs
def orientation(value: Value, depth: int = 0) -> tuple[int, Node | None]:
    """+1 where a value rises with the rewards that came, -1 where it falls, 0 where it isn't clear; and the
    difference that decides."""
    node = _first(value)
    if node is None or depth > 24:
        return 0, None
    inputs = node.inputs
    if node.op in ("mul", "div") and len(inputs) >= 2:
        factor = number_of(inputs[1])
        if node.op == "mul" and (other := number_of(inputs[0])) is not None:
            sign, where = orientation(inputs[1], depth + 1)
            return (sign if other > 0 else -sign), where
        sign, where = orientation(inputs[0], depth + 1)
        return (-sign if factor is not None and factor < 0 else sign), where
    if node.op == "neg":
        sign, where = orientation(inputs[0], depth + 1)
        return -sign, where or node
    if node.op in ("add", "sub") and len(inputs) >= 2:
        return _difference(node, depth)
    if node.op in ("setitem",) and len(inputs) > 1:
        sign, where = orientation(inputs[1], depth + 1)
        return (sign, where) if sign else orientation(inputs[0], depth + 1)
    if node.op in ("stack", "cat", "tensor", "array", "either") and inputs:
        for item in reversed(list(parts(inputs[0])) if node.op != "either" else [p for i in inputs for p in parts(i)]):
            sign, where = orientation(item, depth + 1)
            if sign:
                return sign, where
        return 0, None
    if node.op in ARRAYS or node.op in ("clamp", "detach", "squeeze", "getitem", "exp"):
        return orientation(inputs[0], depth + 1) if inputs else (0, None)
    return 0, None


def _difference(node: Node, depth: int) -> tuple[int, Node | None]:
    one, other = node.inputs[0], node.inputs[1]
    minus = -1 if node.op == "sub" else 1
    if node.op == "sub" and (_mean_of(one, other) or _mean_of(other, one)):
        sign = 1 if _mean_of(other, one) else -1
        rest = one if sign > 0 else other
        found, where = orientation(rest, depth + 1)
        found = found or (0 if any(n.op == "param" for n in ancestors(rest, through=_not_drawn)) else 1)
        return found * sign, (node if sign < 0 else where)
    mine, his = _kind(one), _kind(other)
    if mine in ("value", "data") and leash(other) is not None:
        found, where = orientation(one, depth + 1)
        return found or 1, where  # a reward less what it costs to leave the reference
    if "mean" in (mine, his) and mine != his:
        rest, sign = (one, 1) if his == "mean" else (other, minus)
        found, where = orientation(rest, depth + 1)
        centred = _first(other if his == "mean" else one)
        if not found and centred is not None and any(n is _first(rest) for n in near(centred, 6)):
            found = 1
        return found * sign, (node if sign < 0 else where)
    if {mine, his} == {"value", "chosen"}:
        return (1 if mine == "chosen" else -1, node) if node.op == "sub" else (0, None)
    if mine == "value" and his != "value" and node.op == "sub":
        found, _ = orientation(other, depth + 1)
        return (-1, node) if found >= 0 else (0, node)
    if his == "value" and mine != "value":
        found, where = orientation(one, depth + 1)
        return (found or (1 if mine == "data" else 0)), (where if found < 0 else node)
    if node.op == "add":
        found, where = orientation(one, depth + 1)
        if mine == "data" and not found:
            found = 1
        if found:
            return found, where
        found, where = orientation(other, depth + 1)
        return (found or (1 if his == "data" else 0)), where
    found, where = orientation(one, depth + 1)
    return (found or (1 if mine == "data" else 0)), where or node


def _not_drawn(node: Node) -> bool:
    return node.op not in ("sample", "multinomial", "argmax", "item", "numpy", "tolist")


def _mean_of(value: Value, of: Value) -> bool:
    """True for the average of the very values beside it (of a group)."""
    node = _first(value)
    return node is not None and node.op in ("mean", "median") and bool(node.inputs) and node.inputs[0] is of


def _kind(value: Value) -> str:
    """``value`` for an output of a network, ``mean`` for a statistic, ``data`` where no parameters stand behind."""
    node = _first(value)
    if node is None:
        return "number" if isinstance(value, int | float) else ""
    for _ in range(12):
        if node.op in ("mean", "median") and node.inputs:
            return "mean"
        if node.op in ("linear", "mul", "conv1d", "conv2d", "embedding", "tanh", "bilinear"):
            break
        if node.op == "gather" and node.inputs and _kind(node.inputs[0]) == "value":
            return "chosen"  # the value of the action that was taken, beside that of the state
        inner = (
            _first(node.inputs[0]) if node.inputs and node.op in ARRAYS | {"detach", "max", "amax", "part"} else None
        )
        if inner is None:
            break
        node = inner
    own = [p for p in node.inputs if isinstance(p, Node) and p.op == "param"] if node.op == "linear" else []
    if own and all(p.trainable is False for p in own):
        return "data"  # of a network that stays as it is: a reward model
    if node.op == "linear" or (node.op == "param"):
        return "value"
    if node.op == "mul" and len(node.inputs) > 1:
        sides = [i for i in node.inputs[:2] if not isinstance(i, int | float)]
        return "value" if sides and any(_kind(s) == "value" for s in sides) and len(node.inputs) < 4 else ""
    return "data" if not any(n.op == "param" for n in ancestors(node)) else ""


def advantage_turned(run: Rehearsing) -> Iterator[Answer]:
    """The advantage falls with what was earned, and the loss raises the probability of what has a large one."""
    for _, found in surrogates(run):
        sign, where = orientation(found.advantage)
        if sign < 0 and found.sign < 0 and where is not None and not _is_cost(found, where):
            text = "this is what was expected minus what came: good actions get a negative advantage"
            yield Answer(where.place or found.place, text, (found.place,))
            return


def minimised(run: Rehearsing) -> Iterator[Answer]:
    """The loss itself makes what earned most less likely."""
    for event, found in surrogates(run):
        sign, where = orientation(found.advantage)
        if found.advantage.op in ("softmax", "sigmoid", "log_softmax") or any(
            n.op in REDUCED for n in near(found.advantage, 40)
        ):
            continue
        if not sign and _kind(found.advantage) == "data":
            sign = 1 if _speaks_of_gain(found) else 0
        if found.sign > 0 and sign > 0 and not _is_cost(found, where):
            text = "the loss grows with the probability of what earned most, and is minimised"
            yield Answer(found.place, text, (event.place,) if event.place is not None else ())
            return


GAINS = pattern(r"adv|reward|return|gain|gae|togo|score|payoff|profit", re.IGNORECASE)


def _speaks_of_gain(found: Surrogate) -> bool:
    """True where the product names what is multiplied as something of which more is better."""
    node = found.place[0]
    text = ast.unparse(node) if isinstance(node, ast.expr) else ""
    return bool(GAINS.search(text)) and not COSTS.search(text)


def _is_cost(found: Surrogate, where: Node | None) -> bool:
    """True where the text speaks of a cost, of which less is better."""
    nodes = [n for n in (where, found.advantage) if n is not None and n.place is not None]
    words = [ast.unparse(n.place[0]) for n in nodes if n.place is not None and isinstance(n.place[0], ast.expr)]
    names = [n.name for n in near(found.advantage, 80) if n.name]
    return any(COSTS.search(word) for word in (*words, *names))


PROBABILITIES = frozenset(["log_softmax", "softmax", "exp"])


def _probabilities(value: Node) -> bool:
    """True for probabilities that learn, or what they are on average: no advantage does."""
    first = next((n for n in near(value, 12) if n.op not in STRUCTURE | {"clamp", "clip", "mean"}), value)
    return first.op in PROBABILITIES and (first is value or first.grad)


def entropy_minimised(run: Rehearsing) -> Iterator[Answer]:
    """The entropy of the policy is added to the loss instead of taken off."""
    for event, all_terms in losses_of(run):
        # p log p alone is no policy's surrogate: predictions may well be made sure (entropy minimisation)
        if not any(e is event and not _probabilities(f.advantage) for e, f in surrogates(run)):
            continue
        for term in all_terms:
            direct = term.node.op == "entropy" and term.sign > 0
            if (direct or _plogp(term)) and term.node.place is not None:
                place = _turned_at(term) or term.node.place
                text = "the entropy is part of what is minimised: the policy is made deterministic"
                yield Answer(place, text, (event.place,) if event.place is not None else ())
                return


def _turned_at(term: Term) -> Place | None:
    """Where an entropy gets its sign: the innermost sum that it is part of, outside of its own minus; without such a
    minus, where it should have one."""
    if term.node.op == "entropy":
        return next((n.place for n in reversed(term.path) if n.op in ("add", "sub", "mul", "neg") and n.place),
                    term.node.place)  # fmt: skip
    own = next((at for at in reversed(range(len(term.path))) if term.path[at].op == "neg"), None)
    inner = [n for n in term.path[own + 1 :] if n.op in ("add", "sub")] if own is not None else [term.node]
    outer = [n for n in term.path[:own] if n.op in ("add", "sub", "mul") and n.place] if not inner else []
    sums = [n for n in outer if n.op != "mul"] or outer
    return sums[-1].place if sums else term.node.place


def _plogp(term: Term) -> bool:
    """``-sum p log p`` with a minus too many: what lowers the loss is a lower entropy."""
    node = term.node
    if node.op != "mul" or term.sign >= 0 or len(node.inputs) < 2:
        return False
    ops = {n.op for i in node.inputs[:2] for n in parts(i)}
    return bool(ops & {"softmax", "exp"}) and bool(ops & {"log_softmax", "log"})


def hanging_advantage(run: Rehearsing) -> Iterator[Answer]:
    """The advantage hangs on the critic: the policy's loss trains the critic too."""
    for event, found in surrogates(run):
        if not found.advantage.grad or found.advantage.op in PROBABILITIES:
            continue
        reached = parameters_behind(found.advantage, through_grad=True)
        held = {id(p) for e in steps(run) for p in e.state.get("held", [])}
        mine = parameters_behind(found.logp, through_grad=True)
        if not (reached.keys() & held) or not (reached.keys() - mine.keys()):
            continue
        differs = any(n.op in ("sub", "add") for n in near(found.advantage, 12))
        if differs and log_probability(found.advantage) is None:
            text = "the advantage is not detached here: the policy's loss trains the value network too"
            yield Answer(found.place, text, (event.place,) if event.place is not None else ())
            return
