"""Groups of answers to one prompt: in which order they lie, and at which temperature they were drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import CHOSEN_BY, Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, trained, users

NEAR = 4_000
APART = frozenset(["repeat_interleave"])
"""Copies of one element stand side by side: a a a b b b."""
DRAWS = frozenset(["sample", "multinomial", "gumbel_softmax"])
STATISTICS = frozenset(["mean", "std", "var", "median", "max", "amax", "sum"])
AXES = 2
KEEPS = JOINS | {"either", "long", "setitem", "batch", "where", "masked_fill"}
"""What leaves actions as they are on their way into a batch."""
WAY = 8
"""Steps from a likelihood to the factor that it meets."""
FLOWS = STRUCTURE | {"softmax", "log_softmax", "exp", "log", "masked_fill", "setitem"}
MAX_CHAIN = 40
LIKELIHOODS = frozenset(["gather", "log_prob", "take_along_dim", "getitem"])
CHOOSES = frozenset("eq ne lt le gt ge compare isin logical_and logical_or logical_not and or not attribute".split())
CONVERTS = frozenset(["float", "to", "long", "int", "astype", "bool"])


def regrouped(run: Rehearsing) -> Iterator[Answer]:
    """Rewards that are put into groups along the other axis than the prompts were repeated along."""
    told: set[int] = set()
    for node in run.nodes:
        sizes = _sizes(node)
        if sizes is None or node.place is None or id(node.place[0]) in told or not _summarised(run, node):
            continue
        for copy in behind(node.inputs[0], NEAR):
            count = _copies(copy)
            if count is None or copy.place is None or not _same(count, sizes):
                continue
            side_by_side = _side_by_side(copy)
            group_last = _equal(sizes[1], count)
            if side_by_side == group_last or _equal(sizes[0], sizes[1]):
                break
            told.add(id(node.place[0]))
            lie = "side by side" if side_by_side else "one block after the other"
            # answers of one prompt in a row is how groups are cut: where they are, the copies lie the wrong way, all
            # the more where a function of its own cuts whatever it is given
            usual = not side_by_side and (sizes[0] != -1 or node.place[1] is not copy.place[1])
            wrong, other = (copy.place, node.place) if usual else (node.place, copy.place)
            text = f"the copies of one prompt lie {lie}, and the groups are cut along the other axis"
            yield Answer(wrong, text, (other,))
            break


def turned_back(run: Rehearsing) -> Iterator[Answer]:
    """Values that were put into a matrix of groups are put in a row again along the other axis."""
    for node in run.nodes:
        if node.op not in ("flatten", "reshape", "ravel", "view") or node.place is None or not node.inputs:
            continue
        if node.op in ("reshape", "view") and node.inputs[1:] not in ((-1,), ((-1,),)):
            continue
        turn = node.inputs[0]
        if isinstance(turn, Node) and turn.op in ("contiguous", "clone") and turn.inputs:
            turn = turn.inputs[0]
        if not isinstance(turn, Node) or turn.op not in ("t", "T", "transpose") or not turn.inputs:
            continue
        inner, statistic = turn.inputs[0], False
        for _ in range(WAY):
            if not isinstance(inner, Node) or _sizes(inner) is not None:
                break
            statistic = statistic or any(isinstance(i, Node) and any(n.op in STATISTICS for n in near(i, 4))
                                         for i in inner.inputs[1:])  # fmt: skip
            inner = inner.inputs[0] if inner.op in ("sub", "div", "mul", "add", "clamp") and inner.inputs else None
        whole = inner.inputs[0] if isinstance(inner, Node) and _sizes(inner) is not None else None
        if statistic and isinstance(whole, Node) and len(whole.shape.dims) == 1 and not whole.shape.open:
            text = "these were put into rows of one group each, and come back column by column: in another order"
            yield Answer(node.place, text, tuple(p for p in (inner.place,) if p is not None))
            return


def other_groups(run: Rehearsing) -> Iterator[Answer]:
    """Rewards in a matrix of prompts and their answers, compared along the axis of the prompts."""
    for node in run.nodes:
        sizes = _sizes(node)
        if sizes is None or node.place is None or _equal(sizes[0], sizes[1]):
            continue
        for copy in behind(node.inputs[0], NEAR):
            count = _copies(copy)
            if count is None or count in (1, -1) or not _equal(sizes[1], count) or _equal(sizes[0], count):
                continue
            if not _side_by_side(copy):
                continue
            for user in run.nodes:
                first = user.inputs[0] if user.op in ("mean", "std") and user.inputs else None
                if first is not node or along(user) not in (0, -2) or user.place is None:
                    continue
                text = "the answers of one prompt lie along axis 1 here, and are compared along axis 0"
                yield Answer(user.place, text, tuple(p for p in (node.place, copy.place) if p is not None))
                return
            break


def behind(value: Value, count: int) -> list[Node]:
    """What is near to a value, what decides about it too (``1.0 if text == answer else 0.0``)."""
    found = near(value, count)
    seen = {id(n) for n in found}
    for node in found:
        test = node.attributes.get(CHOSEN_BY)
        for inner in near(test, count) if isinstance(test, Node) and len(found) < count else ():
            if id(inner) not in seen:
                seen.add(id(inner))
                found.append(inner)
    return found


def _sizes(node: Node) -> tuple[Value, Value] | None:
    """The two sizes of a ``view`` or ``reshape`` to a matrix."""
    if node.op not in ("view", "reshape") or not node.inputs or not isinstance(node.inputs[0], Node):
        return None
    sizes = list(node.inputs[1:])
    if len(sizes) == 1 and isinstance(sizes[0], tuple | Items):
        sizes = list(sizes[0] if isinstance(sizes[0], tuple) else sizes[0].items)
    return (sizes[0], sizes[1]) if len(sizes) == AXES else None


def _copies(node: Node) -> Value | None:
    """How often the first axis is repeated as a whole; None for anything else."""
    if node.op in APART or node.full == "numpy.repeat":
        return node.get("repeats", 1)
    if node.op in ("repeat", "tile") and len(node.inputs) > 1:
        first = node.inputs[1]
        return first[0] if isinstance(first, tuple) and first else first
    if node.op in JOINS - {"stack", "hstack"} and node.inputs and node.get("dim", 1, 0) == 0:
        items = node.inputs[0].items if isinstance(node.inputs[0], Items) else node.inputs[0]
        same = isinstance(items, list | tuple) and len(items) > 1 and all(i is items[0] for i in items)
        return len(items) if same and isinstance(items[0], Node) else None
    spread = _spread(node)
    return spread[0] if spread is not None else None


def _spread(node: Node) -> tuple[Value, bool] | None:
    """``x[:, None].expand(-1, n, -1).flatten(0, 1)`` (``n``, True), ``x[None].expand(n, -1, -1)...`` (``n``, False)."""
    wide = node.inputs[0] if node.op in ("flatten", "reshape", "view") and node.inputs else None
    if not isinstance(wide, Node) or wide.op != "expand" or not isinstance(wide.inputs[0], Node):
        return None
    before, within, after = wide.inputs[0].shape, wide.shape, node.shape
    merged = not within.open and not after.open and len(after.dims) == len(within.dims) - 1
    if before.open or not merged or after.dims[1:] != within.dims[2:] or len(before.dims) != len(within.dims):
        return None
    sizes = wide.inputs[1] if isinstance(wide.inputs[1], tuple) else wide.inputs[1:]
    new = [at for at, size in enumerate(sizes) if before.dims[at] == 1 and size not in (1, -1)]
    return (sizes[new[0]], new == [1]) if new in ([0], [1]) else None


def _side_by_side(copy: Node) -> bool:
    """True where the copies of one element stand beside each other (a a a b b b), False for one block after another."""
    spread = _spread(copy)
    return spread[1] if spread is not None else copy.op in APART or copy.full == "numpy.repeat"


def _same(count: Value, sizes: tuple[Value, Value]) -> bool:
    return count not in (1, -1) and (_equal(sizes[0], count) != _equal(sizes[1], count))


def _equal(one: Value, other: Value) -> bool:
    return one is other or (isinstance(one, int) and isinstance(other, int) and one == other)


def _summarised(run: Rehearsing, node: Node) -> bool:
    """True where a mean or spread over the second axis, or the first, is taken of it."""
    return any(n.op in STATISTICS and n.inputs and n.inputs[0] is node and len(n.inputs) + len(n.options) > 1
               for n in run.nodes)  # fmt: skip


def other_temperature(run: Rehearsing) -> Iterator[Answer]:
    """Actions drawn at one temperature whose likelihood, weighed by how well they did, is computed at another."""
    told: set[int] = set()
    for node in trained(run):
        if node.op not in LIKELIHOODS or node.place is None:
            continue
        if id(node.place[0]) in told:
            continue
        picks = node.inputs[:1] if node.op == "log_prob" else node.inputs[1:]
        drawn = next((d for i in picks for d in _drawn(i)), None)
        raw = _scored(node)
        if drawn is None or raw is None or drawn.owner is node.owner is not None or not _weighed(run, node):
            continue
        drawn_at, scored_at = _temperature(_logits(drawn)), _temperature(raw)
        if drawn_at is None or scored_at is None or math.isclose(drawn_at[0], scored_at[0], rel_tol=1e-6):
            continue
        if _corrected(run, node, drawn, drawn_at[0]):
            continue
        told.add(id(node.place[0]))
        text = (
            f"the likelihood is computed at a temperature of {scored_at[0]:g}, and what it judges was drawn at "
            f"{drawn_at[0]:g}"
        )
        places: list[Place] = [
            p for n in (drawn_at[1], drawn, scored_at[1]) if n is not None and (p := n.place) is not None
        ]
        yield Answer(node.place, text, tuple(places))


def _weighed(run: Rehearsing, node: Node) -> bool:
    """True where a likelihood meets a factor, or becomes a ratio: it is that of a policy, not of a text to learn."""
    table, level = users(run), [node]
    for _ in range(WAY):
        level = [user for one in level for user in table.get(id(one), ()) if user.grad]
        for user in level:
            if user.op == "exp":
                return True
            if user.op == "mul" and any(isinstance(i, Node) and not i.grad and _judges(i) for i in user.inputs):
                return True
    return False


def _judges(factor: Node) -> bool:
    """True for a factor that is more than a choice of samples: those that are kept are learned as a text is."""
    at: Value = factor
    while isinstance(at, Node) and at.op in STRUCTURE | CONVERTS and at.inputs:
        at = at.inputs[0]
    return isinstance(at, Node) and at.op not in CHOOSES


def _corrected(run: Rehearsing, node: Node, drawn: Node, temperature: float) -> bool:
    """True where the likelihood is weighed by a ratio without gradient to the one that it was drawn with."""
    for user in run.nodes:
        if user.op != "exp" or user.grad or not user.inputs or not isinstance(user.inputs[0], Node):
            continue
        for other in ancestors(user.inputs[0]):
            if other.op not in LIKELIHOODS or other is node or not any(drawn in _drawn(i) for i in other.inputs):
                continue
            at = _temperature(_scored(other))
            if at is not None and math.isclose(at[0], temperature, rel_tol=1e-6):
                return True
    return False


def _logits(drawn: Node) -> Value:
    """What the probabilities that something is drawn from are computed from."""
    if drawn.owner is not None:
        logits = drawn.owner.attributes.get("logits")
        return logits if logits is not None else drawn.owner.attributes.get("probs")
    return drawn.inputs[0] if drawn.inputs else None


def _drawn(value: Value) -> Iterator[Node]:
    for node in ancestors(value, through=lambda n: n.op in STRUCTURE or n.op in KEEPS):
        if node.op in DRAWS:
            yield node


def _temperature(value: Value) -> tuple[float, Node | None] | None:
    """What logits are divided by between a network's output and what is drawn or scored, and where last; None where
    it isn't known. A division of probabilities (to a sum of one) is no temperature."""
    found, where = 1.0, None
    for _ in range(MAX_CHAIN):
        if not isinstance(value, Node):
            return None
        node, first, by = value, value.inputs[0] if value.inputs else None, (*value.inputs, None, None)[1]
        if node.op in ("div", "mul") and len(node.inputs) == AXES:
            if node.op == "mul" and isinstance(first, int | float):
                first, by = by, first
            if isinstance(by, int | float) and not isinstance(by, bool) and by > 0:
                found, where = (found * by if node.op == "div" else found / by), node if by != 1 else where
            elif not _to_one(by, first):
                return None
        elif node.op in ("softmax", "exp"):
            found, where = 1.0, None
        elif node.op == "either" or node.unknown:
            return None
        elif node.op not in FLOWS:
            return found, where
        value = first
    return None


def _to_one(by: Value, divided: Value) -> bool:
    """True for the sum of what is divided."""
    return isinstance(by, Node) and by.op == "sum" and bool(by.inputs) and by.inputs[0] is divided


def _scored(node: Node) -> Value:
    """The logits that a likelihood is computed from; None where they are not in sight."""
    if node.op == "log_prob":
        return _logits(node) if node.owner is not None and node.owner.name == "Categorical" else None
    for inner in ancestors(node.inputs[0] if node.inputs else None, through=lambda n: n.op in STRUCTURE):
        if inner.op == "log_softmax":
            return inner.inputs[0]
    return None
