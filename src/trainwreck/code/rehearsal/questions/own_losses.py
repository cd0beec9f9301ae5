"""Losses that the program writes out itself: which kind of output do their formulas take?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.graph import carries, parts, reached
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.learners import learners
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE, backwards, bounds, core, trained, users
from trainwreck.code.rehearsal.questions.roles import learns as learned
from trainwreck.code.rehearsal.questions.terms import losses_of

EDGE = 0.05
"""A clamp that begins below this and ends so little under one keeps a logarithm of probabilities finite."""
WAY = 6
"""Steps from a clamped value to the logarithms of the two sides."""
SCORES = frozenset([*RAW, "embedding", "matmul", "einsum", "bmm"])
"""What gives any real numbers, where parameters stand behind it."""
PICKED = frozenset(["gather", "take_along_dim", "getitem"])


def soft_by_hand(node: Node) -> bool:
    """``exp(z) / exp(z).sum()`` and ``1 / (1 + exp(-z))``."""
    if node.op == "exp" and node.inputs:
        return any(n.op in ("log_softmax", "logsigmoid") for n in core(node.inputs[0]))
    if node.op not in ("div", "reciprocal") or not node.inputs:
        return False
    below = node.inputs[-1] if node.op == "div" else node.inputs[0]
    above = node.inputs[0] if node.op == "div" else 1
    if isinstance(above, Node):
        return above.op == "exp" and any(
            n.op == "sum" and any(_same(inner, above) for inner in core(n.inputs[0])) for n in core(below)
        )
    if above != 1 or not isinstance(below, Node) or below.op != "add" or len(below.inputs) < 2:
        return False
    one, power = below.inputs[:2] if not isinstance(below.inputs[0], Node) else below.inputs[1::-1]
    return one == 1 and isinstance(power, Node) and power.op == "exp"


def by_hand_at(node: Node) -> Place | None:
    """Where a formula for probabilities is asked for: the call of the function that holds it, and not what it takes."""
    if node.place is None or not soft_by_hand(node):
        return None
    at: Node = node
    for _ in range(WAY):
        if at.op not in ("div", "reciprocal", "add", "exp", "neg", "sub", "log_softmax"):
            break
        inner = [n for i in at.inputs[:2] for n in core(i) if n.grad]
        at = inner[0] if inner else at
    return _entered(node, at)


def _same(one: Node, other: Node) -> bool:
    """The same exponential, computed once or twice."""
    return one is other or (one.op == other.op == "exp" and bool(one.inputs) and one.inputs[0] is other.inputs[0])


def squashed_logits(run: Rehearsing) -> Iterator[Answer]:
    """Raw outputs that are cut to what lies between 0 and 1 and taken for probabilities by a binary cross entropy."""
    for node in trained(run):
        if node.op not in ("clamp", "clip") or not node.grad or node.place is None or not node.inputs:
            continue
        limits = bounds(node)
        found = core(node.inputs[0])
        inside = 0 <= limits.low <= EDGE and 1 - EDGE <= limits.high <= 1
        if inside and found and all(_scores(n) for n in found) and _both_sides(run, node):
            text = "raw outputs are cut to what lies between 0 and 1 here and taken for probabilities: no sigmoid"
            yield Answer(_entered(node, found[0]), text, (node.place,))


def _scores(node: Node, depth: int = 0) -> bool:
    """True for outputs of any size and sign: of a layer, or products of learned vectors and what is added to them."""
    if not node.grad or depth > WAY:
        return False
    if node.op in SCORES:
        return node.op in RAW or bounds(node).low < 0
    if node.op in ("sum", "add", "sub") and node.inputs:
        items = [i for i in node.inputs[:2] if isinstance(i, Node) and i.grad]
        return any(_scores(n, depth + 1) for i in items for n in core(i)) and bounds(node).low < 0
    if node.op == "mul" and len(node.inputs) > 1 and node.inputs[0] is not node.inputs[1]:
        return all(any(_scores(n, depth + 1) for n in core(i)) for i in node.inputs[:2])
    return False


def _both_sides(run: Rehearsing, node: Node) -> bool:
    """True where ``log(p)`` and ``log(1 - p)`` are taken, or the library's loss does."""
    plain = other = False
    level: list[tuple[Node, bool]] = [(node, False)]
    for _ in range(WAY):
        further: list[tuple[Node, bool]] = []
        for one, turned in level:
            for user in users(run).get(id(one), ()):
                if user.op == "binary_cross_entropy":
                    return True
                plain = plain or (user.op == "log" and not turned)
                other = other or (user.op == "log" and turned) or (user.op == "log1p" and turned)
                if user.op == "sub" and user.inputs[0] == 1 and not isinstance(user.inputs[0], Node):
                    further.append((user, True))
                elif user.op in STRUCTURE or user.op in ("neg", "batch"):
                    further.append((user, turned or user.op == "neg"))
        level = further
    return plain and other


def _entered(node: Node, source: Node) -> Place:
    """The outermost call that works on ``source`` from without: where a reader sees what is given to the loss."""
    assert node.place is not None
    within = [id(at[0]) for at in source.stack]
    for depth, place in enumerate(node.stack):
        if depth >= len(within) or within[depth] != id(place[0]):
            return place
    return node.place


def raw_picked(run: Rehearsing) -> Iterator[Answer]:
    """A loss that is nothing but minus the raw score of the right class: it falls without end."""
    known = learners(run).hangs
    for event, found in losses_of(run):
        if len(found) != 1 or found[0].weight >= 0 or not found[0].sure:
            continue
        if any(carries(f) for f in found[0].factors):
            continue  # weighed by rewards or the like; a number of rows is no weight
        node, picks = found[0].node, [n for n in found[0].path if n.op in PICKED and _by_labels(n)]
        if not picks or node.op not in RAW or not known.get(id(node)) or _elsewhere(run, event, node):
            continue
        if picks[0].place is not None:
            text = "minus the raw output of the right class is no likelihood: no log-softmax stands before it"
            yield Answer(_entered(picks[0], node), text, (picks[0].place,))


def _by_labels(node: Node) -> bool:
    """True where whole numbers of the data, which no network gave, say which of the outputs counts."""
    index = [*node.inputs[1:], *node.options.values()]
    nodes = [n for i in index for n in parts(i) if n.op != "arange"]
    return bool(nodes) and not any(n.unknown or learned(n) for n in nodes)


def _elsewhere(run: Rehearsing, event: Event, node: Node) -> bool:
    """True where another backward goes through the same layer: that one may hold the score down."""
    layers = {id(p) for p in node.inputs if isinstance(p, Node) and p.op == "param"}
    others = (e for e in backwards(run) if e.place is not None and e is not event and e.place != event.place)
    return any(id(p) in layers for other in others for p in reached(other.subject))
