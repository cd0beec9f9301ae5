"""Which way a term of the objective pulls: worked out for embeddings that are as they should be, and as they shouldn't.

- A term that knows which samples belong together (``y[:, None] == y[None, :]``) must be lower where each class lies
  closer together, and where the classes lie further apart.
- A term on two views must be lower where the views of one sample agree than where they are of different samples.
- A term that is zero where two outputs agree, and below zero wherever they differ, is a divergence that is maximised.

All is worked out (``trial``) with a few rows in the place of what the network gives, so it doesn't matter how a term is
spelt. Each comparison has to hold for all of several draws.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.canonical import RANDOM
from trainwreck.code.rehearsal.questions.roles import PRODUCTS, STRUCTURE, backwards, bounds, given, trained, unknown
from trainwreck.code.rehearsal.questions.scenes import Scene, agreement, choices, classes, leaf, sets, views
from trainwreck.code.rehearsal.questions.signs import distance
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown
from trainwreck.core.row import Row

DRAWS = 6
MOST_NODES = 400
CLEAR = 1e-4
"""Two values of a term that differ by less are taken for equal."""
APART_ON_PURPOSE = pattern(
    r"divers|repel|repuls|discrep|advers|confus|explor|novel|entrop|decorr|orthog|redund|unlearn|forget|uniform|revers"
)
ACTIVATIONS = frozenset("relu gelu silu tanh sigmoid leaky_relu elu softmax log_softmax softplus identity".split())


class Part(Row):
    """A summand of an objective: +1 if it is minimised, -1 if maximised."""

    node: Node
    sign: int
    place: Place | None
    """Where it is taken off."""


class Trial(Row):
    """A summand with what it is made of: outputs of layers, and what says which samples belong together."""

    part: Part
    outputs: list[Node]
    labels: list[Node]
    inner: list[Node]
    """All that is computed between."""
    others: tuple[Node, ...] = ()
    """Outputs of the same layers that other summands compare these with."""
    asked: tuple[Node, ...] = ()
    """Labels that other summands are about."""
    beside: tuple[Part, ...] = ()
    """Other summands on the same outputs that are counted with it."""


def summands(
    value: Value, sign: int = 1, place: Place | None = None, level: int = 1000, depth: int = 0
) -> Iterator[Part]:
    """The summands of an objective; what a function (more than ``level`` calls deep) adds up is one of them."""
    if not isinstance(value, Node) or not value.grad or depth > 30:
        return
    if len(value.stack) > level:
        yield Part(value, sign, place)
        return
    if value.op in ("add", "sub") and len(value.inputs) == 2:
        yield from summands(value.inputs[0], sign, place, level, depth + 1)
        turned = value.op == "sub"
        yield from summands(
            value.inputs[1], -sign if turned else sign, value.place if turned else place, level, depth + 1
        )
        return
    if value.op in ("mul", "div") and len(value.inputs) == 2:
        for factor, rest in (value.inputs, value.inputs[::-1]):
            if isinstance(rest, Node) and rest.grad and not (isinstance(factor, Node) and factor.grad):
                if value.op == "div" and factor is value.inputs[0]:
                    return
                span = bounds(factor)
                if span.high <= 0:
                    yield from summands(rest, -sign, value.place, level, depth + 1)
                elif span.low >= 0 or isinstance(factor, Node):
                    yield from summands(rest, sign, place, level, depth + 1)
                return
    yield Part(value, sign, place)


def _trials(run: Rehearsing) -> list[Trial]:
    if "pulling" not in run.memo:
        found: dict[int, Trial] = {}
        for event in backwards(run):
            if not isinstance(event.subject, Node):
                continue
            parts = list(summands(event.subject, level=len(event.subject.stack)))
            trials = [t for t in map(_trial, parts) if t is not None and t.part.node.place is not None]
            for trial in trials:
                rest = [n for p in parts if p is not trial.part for n in ancestors(p.node)]
                found.setdefault(id(trial.part.node), _with_others(trial, trials, rest))
        run.memo["pulling"] = list(found.values())
    known: list[Trial] = run.memo["pulling"]
    return known


def _trial(part: Part) -> Trial | None:
    outputs: list[Node] = []
    inner: list[Node] = []
    labels: dict[int, Node] = {}

    def through(node: Node) -> bool:
        return not output_of_layer(node)

    for node in ancestors(part.node, through=through):
        if len(inner) > MOST_NODES or (unknown(node) and node.grad):
            return None
        if output_of_layer(node):
            outputs.append(node)
            continue
        inner.append(node)
        if node.op in ("eq", "ne") and not node.grad:
            for root in _compared(node):
                labels[id(root)] = root
    if not outputs or any(n.op == "param" and (n.shape.open or n.shape.dims) for n in inner):
        return None
    return Trial(part, outputs, list(labels.values()), inner)


def _with_others(trial: Trial, trials: list[Trial], rest: list[Node]) -> Trial:
    mine, owners = {id(o) for o in trial.outputs}, {id(o.owner) for o in trial.outputs}
    pairs = [t.outputs for t in trials if t is not trial and any(id(o) in mine for o in t.outputs)]
    others = [o for pair in pairs for o in pair if id(o.owner) in owners and id(o) not in mine and o.grad]
    asked: list[Node] = []
    for node in rest:
        if node.op in ("eq", "ne") and not node.grad:
            asked += _compared(node)
        elif node.op in ("cross_entropy", "nll_loss"):
            target = given(node, "target", 1)
            roots = ancestors(target, through=lambda n: n.op in STRUCTURE) if isinstance(target, Node) else ()
            asked += [n for n in roots if n.op not in STRUCTURE and not n.grad and n.op != "arange"]
    return trial._replace(others=tuple(others), asked=tuple(asked))


def output_of_layer(node: Node) -> bool:
    """What a layer of a library gives."""
    return node.owner is not None and node.owner.cls is None and node.op not in ("param", "batch") and bool(node.full)


def _compared(node: Node) -> list[Node]:
    """The data of which each is compared with each: the same on both sides."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    if len(sides) != 2:
        return []
    roots = [
        {id(n): n for n in ancestors(s, through=lambda n: n.op in STRUCTURE) if n.op not in STRUCTURE} for s in sides
    ]
    shared = [n for key, n in roots[0].items() if key in roots[1]]
    return [n for n in shared if n.op not in ("arange", "size", "attribute", "randperm") and not n.grad]


# ---------------------------------------------------------------------- questions
def pulled_apart(run: Rehearsing) -> Iterator[Answer]:
    """Samples that belong together are pushed apart, or others are pulled together."""
    for trial in _trials(run):
        if not trial.labels or trial.part.node.place is None:
            continue
        if trial.asked and not {id(n) for n in trial.asked} & {id(n) for n in trial.labels}:
            continue  # others say what belongs together: of these nothing is to be told (speakers, sessions, cameras)
        if _wrong(run, trial, classes):
            place = _repaired(run, trial, classes)
            text = "samples that belong together are pushed apart by this, or others are pulled together"
            yield Answer(place, text, _proof(trial, place))


def views_apart(run: Rehearsing) -> Iterator[Answer]:
    """Two views of one sample are pushed apart."""
    for trial in _trials(run):
        if trial.labels or len(trial.outputs) != 2 or trial.part.node.place is None:
            continue
        one, other = trial.outputs
        alike = one.owner is other.owner and one.grad and other.grad
        crossed = any(n.op in PRODUCTS or n.op in ("cdist", "cosine_similarity", "sub") for n in trial.inner)
        weighed = any(n.op in RANDOM and not n.grad for n in trial.inner)  # some pairs belong together, others don't
        sought = alike and crossed and not weighed and not trial.others and not _on_purpose(run, trial)
        if sought and _wrong(run, trial, views):
            place = _repaired(run, trial, views)
            text = "the two views of one sample are pushed apart by this, and those of others together"
            yield Answer(place, text, _proof(trial, place))


def divergence_maximised(run: Rehearsing) -> Iterator[Answer]:
    """A term that is zero where two outputs agree, and negative wherever they differ."""
    if len([o for o in run.objects if is_optimizer(o)]) > 1:
        return
    for trial in _trials(run):
        if trial.labels or len(trial.outputs) != 2 or trial.part.node.place is None or _on_purpose(run, trial):
            continue
        if trial.others:
            continue  # samples that are to be alike, and others that are to differ
        if _wrong(run, trial, agreement):
            place = _repaired(run, trial, agreement)
            text = "this is zero where the two agree and negative where they differ: they are driven apart"
            yield Answer(place, text, _proof(trial, place))


def sets_apart(run: Rehearsing) -> Iterator[Answer]:
    """A distance of two sets by kernels (maximum mean discrepancy) that grows where the sets come closer."""
    for trial in _trials(run):
        if trial.labels or len(trial.outputs) != 2 or trial.part.node.place is None or _on_purpose(run, trial):
            continue
        if _kernels(trial) and _wrong(run, trial, sets):
            place = _repaired(run, trial, sets)
            text = "this is smaller where the two sets lie apart: they are driven apart"
            yield Answer(place, text, _proof(trial, place))


def _kernels(trial: Trial) -> bool:
    """True where exponentials of distances within both sets and between them are taken."""
    pairs = set()
    for node in trial.inner:
        if node.op in ("cdist", "matmul", "pairwise_distance", "sub") and len(node.inputs) == 2:
            sides = [{id(o) for o in trial.outputs if any(a is o for a in ancestors(i))} for i in node.inputs]
            pairs.add(frozenset(sides[0] | sides[1]) if all(len(s) == 1 for s in sides) else frozenset())
    wanted = {frozenset([id(o)]) for o in trial.outputs} | {frozenset(id(o) for o in trial.outputs)}
    return wanted <= pairs and any(n.op == "exp" for n in trial.inner)


def choices_dulled(run: Rehearsing) -> Iterator[Answer]:
    """The entropy of each choice and that of their mean over the batch: together they are to make choices sure and
    different, and these are pulled to be unsure or all the same."""
    for trial in _trials(run):
        if trial.labels or len(trial.outputs) != 1 or trial.part.node.place is None:
            continue
        if _both_entropies(trial) and _wrong(run, trial, choices):
            place = _repaired(run, trial, choices)
            text = "choices are pulled to be unsure, or all the same: one of the two entropies has the wrong sign"
            yield Answer(place, text, _proof(trial, place))


def _both_entropies(trial: Trial) -> bool:
    soft = [n for n in trial.inner if n.op in ("softmax", "sigmoid")]
    means = [n for n in trial.inner if n.op == "mean" and any(i in soft for i in n.inputs if isinstance(i, Node))]
    logs = [n for n in trial.inner if n.op in ("log", "xlogy") or n.op == "log_softmax"]
    averaged = [n for n in logs if any(a in means for a in ancestors(n))]
    return bool(averaged) and len(averaged) < len(logs)


def margin_turned(run: Rehearsing) -> Iterator[Answer]:
    """A hinge over the difference of two distances from which the margin is taken off instead of being asked for."""
    for node in trained(run):
        hinge = node.op in ("relu", "clamp", "clamp_min", "maximum", "softplus") and node.inputs
        if not hinge or not isinstance(node.inputs[0], Node) or node.place is None:
            continue
        compared: list[Part] = []
        margin = _summed(node.inputs[0], 1, compared)
        kinds = {distance(p.node) for p in compared}
        if (
            margin < 0
            and len(compared) == 2
            and compared[0].sign != compared[1].sign
            and len(kinds) == 1
            and 0 not in kinds
        ):
            text = "the margin is taken off: nothing is asked of pairs that are wrong by less than it"
            yield Answer(node.inputs[0].place or node.place, text)


def _summed(value: Value, sign: int, found: list[Part], depth: int = 0) -> float:
    """The numbers in a sum; what else is added or taken off goes into ``found``."""
    if isinstance(value, int | float):
        return sign * float(value)
    if isinstance(value, Node) and value.op in ("add", "sub") and len(value.inputs) == 2 and depth < 6:
        one = _summed(value.inputs[0], sign, found, depth + 1)
        return one + _summed(value.inputs[1], -sign if value.op == "sub" else sign, found, depth + 1)
    if isinstance(value, Node):
        found.append(Part(value, sign, None))
    return 0.0


def _on_purpose(run: Rehearsing, trial: Trial) -> bool:
    """True where a name says that the two are to differ, or a function of the program turns gradients round."""
    names = [at[1].name for n in trial.inner for at in (*n.stack, *([n.place] if n.place is not None else []))]
    names += [_assigned(run, n) for n in trial.inner[:6]]
    return any(APART_ON_PURPOSE.search(name) for name in names) or any(n.op == "apply" for n in run.nodes)


def _assigned(run: Rehearsing, node: Node) -> str:
    """The name that a value is given."""
    statement = run.project.statement(*node.place) if node.place is not None else None
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return " ".join(written(t) for t in targets)


# ---------------------------------------------------------------------- working it out
def _wrong(run: Rehearsing, trial: Trial, scene: Scene) -> bool:
    """True where in all draws what should be costs more than what shouldn't, and the summands beside it on the same
    outputs don't make up for it: one formula may be written as several."""
    if not _costs_more(trial, scene):
        return False
    mine = {id(o) for o in trial.outputs}
    beside = [
        t.part
        for t in _trials(run)
        if t is not trial and {id(o) for o in t.outputs} == mine and _scope(t.part) is _scope(trial.part)
    ]
    return not beside or not _right(trial._replace(beside=tuple(beside)), scene, {})


def _scope(part: Part) -> object:
    return part.node.place[1] if part.node.place is not None else None


def _costs_more(trial: Trial, scene: Scene) -> bool:
    turned: dict[int, bool] = {}
    try:
        verdicts = [_verdicts(trial, scene, draw, turned) for draw in range(DRAWS)]
    except (Unknown, ValueError):
        return False
    return any(all(v[at] < 0 for v in verdicts) for at in range(len(verdicts[0])))


def _right(trial: Trial, scene: Scene, turned: dict[int, bool]) -> bool:
    try:
        verdicts = [_verdicts(trial, scene, draw, turned) for draw in range(DRAWS)]
    except (Unknown, ValueError):
        return False
    return all(v >= 0 for found in verdicts for v in found) and any(v > 0 for found in verdicts for v in found)


def _verdicts(trial: Trial, scene: Scene, draw: int, turned: dict[int, bool]) -> list[int]:
    """For each pair +1 where the first is cheaper, -1 where the second is, else 0."""
    found: list[int] = []
    for good, bad in scene(trial.outputs, trial.labels, draw):
        values = [_value(trial, arrays, draw, turned) for arrays in (good, bad)]
        gap = values[1] - values[0]
        if scene is agreement and abs(values[0]) > CLEAR * max(1.0, abs(values[1])):
            return [0]
        found.append(0 if abs(gap) < CLEAR * max(1.0, abs(values[0])) else 1 if gap > 0 else -1)
    return found


def _value(trial: Trial, arrays: dict[int, Array], draw: int, turned: dict[int, bool]) -> float:
    import math

    total = 0.0
    for part in (trial.part, *trial.beside):
        bench = Bench(leaf=leaf, seed=draw)
        bench.turned = turned
        for node in (*trial.outputs, *trial.labels):
            bench.set(node, arrays[id(node)])
        total += bench.number(part.node) * part.sign
    if not math.isfinite(total):
        raise Unknown
    return total


# ---------------------------------------------------------------------- where
def _repaired(run: Rehearsing, trial: Trial, scene: Scene) -> Place:
    """The operation that, turned round, makes the term pull the right way; else where the term is reduced."""
    here = trial.part.node.place
    assert here is not None
    if trial.part.sign < 0 and trial.part.place is not None:
        return trial.part.place
    fits = [
        n
        for n in trial.inner[:60]
        if n.op in ("sub", "neg", "add", "eq", "ne") and n.place is not None and _right(trial, scene, {id(n): True})
    ]
    named = [n for n in fits if n.op in ("eq", "ne") and _contradicts(run, n)]
    sums = [n for n in fits if n.op not in ("eq", "ne") and not _log_share(n)]
    beside = [n for n in fits if n.op in ("eq", "ne") and n.place is not None and n.place[1] is here[1]]
    chosen = (named or sums or beside or [trial.part.node])[0]
    return chosen.place or here


def _contradicts(run: Rehearsing, node: Node) -> bool:
    name = _assigned(run, node)
    wanted = "eq" if SAME.search(name) else "ne" if OTHER.search(name) else ""
    return bool(wanted) and wanted != node.op


def _log_share(node: Node) -> bool:
    """True for ``scores - logsumexp(scores)``: that is a logarithm of probabilities, and right as it is."""
    other = node.inputs[1] if node.op == "sub" and len(node.inputs) > 1 else None
    return isinstance(other, Node) and other.op in ("logsumexp", "log")


SAME = pattern(r"pos|same|match|equal|similar|together|pair")
OTHER = pattern(r"neg|diff|other|unequal|apart")


def _proof(trial: Trial, place: Place) -> tuple[Place, ...]:
    at = trial.part.node.place
    return (at,) if at is not None and at[0] is not place[0] else ()
