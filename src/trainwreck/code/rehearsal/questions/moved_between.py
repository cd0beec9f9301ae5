"""Rows of the inputs that are moved or left out, and labels that do not follow.

Numbers of rows are shuffled in place after the labels were taken by them and before the inputs are; rows are left out
of the inputs, and the labels are cut to as many."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import meets, paths
from trainwreck.code.rehearsal.questions.roles import backwards

JOINS = frozenset(["cat", "concatenate", "concat", "vstack"])
LEAVES_OUT = frozenset(["dropna", "drop_duplicates", "compress", "masked_select", "query"])
TESTS = frozenset("invert isnan isna notna isfinite gt lt ge le ne eq and or all any nonzero flatnonzero where".split())
CONVERTS = frozenset(
    "to_numpy astype from_numpy tensor as_tensor array asarray float attribute copy reset_index".split()
)


def shuffled_between(run: Rehearsing) -> Iterator[Answer]:
    """``y = labels[idx]; rng.shuffle(idx); x = data[idx]``: row k of the one is another sample than row k of the other.

    All ways of the inputs are taken on one side of the shuffle, all of the labels on the other, in one turn."""
    shuffles = [n for n in run.nodes if n.op == "shuffle" and n.place is not None]
    for event in backwards(run) if shuffles else ():
        for _, inside, outside in meets(event.subject):
            for shuffle in shuffles:
                order = shuffle.inputs[-1] if shuffle.inputs else None
                if not isinstance(order, Node) or order.turns != shuffle.turns:
                    continue
                mine, theirs = _taken(run, inside, order), _taken(run, outside, order)
                sides = [{n.serial > shuffle.serial for n in side} for side in (mine, theirs)]
                known = all(len(side) == 1 for side in sides) and sides[0] != sides[1]
                if known and all(n.turns == order.turns for n in (*mine, *theirs)) and shuffle.place is not None:
                    before = mine[0] if mine[0].serial < shuffle.serial else theirs[0]
                    text = "rows were taken by these numbers before they are shuffled, what belongs to them afterwards"
                    yield Answer(shuffle.place, text, (before.place,) if before.place is not None else ())
                    return


def cut_to_fit(run: Rehearsing) -> Iterator[Answer]:
    """``x = x[good]; y = y[:len(x)]``: from the first row on that is left out, labels belong to other rows."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            for here, there in ((inside, outside), (outside, inside)):
                ways = [p for v in here for p in paths(run, v)]
                for path in (p for v in there for p in paths(run, v)):
                    for step in path.steps:
                        left = _fitted(step.index)
                        if left is None or step.place is None or any(n is left for n in path.nodes):
                            continue
                        if ways and all(any(n is left for n in p.nodes) for p in ways if p.steps):
                            text = "these are cut to as many rows as are left of the others, which lost some in between"
                            yield Answer(step.place, text, (left.place,) if left.place is not None else ())
                            return


def parted_and_joined(run: Rehearsing) -> Iterator[Answer]:
    """``x = cat([x[~m], turned(x[m])])``: rows that a mask chose come behind the others, their labels do not."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            for value in inside:
                for node in ancestors(value):
                    mask = _parted(node) if node.op in JOINS and not node.grad else None
                    if mask is None or node.place is None or not outside:
                        continue
                    labels = [n for o in outside for n in ancestors(o)]
                    put_back = any(n.op == "getitem" and n.inputs[0] is node for n in ancestors(value))
                    if not put_back and all(n is not mask for n in labels):
                        text = "rows that a mask chose are put behind the others here, and the labels stay as they are"
                        yield Answer(node.place, text, (mask.place,) if mask.place is not None else ())
                        return


def _parted(joined: Node) -> Node | None:
    """The mask by which the rows of one array were parted that are joined again here."""
    held = joined.inputs[0] if joined.inputs else None
    axis = joined.options.get("dim", joined.options.get("axis", joined.inputs[1] if len(joined.inputs) > 1 else 0))
    found: list[tuple[Node, Node, bool]] = []
    for item in parts(held) if axis == 0 else ():
        pick = next((n for n in near(item, 12) if n.op == "getitem" and _tests(n.inputs[1])), None)
        index = pick.inputs[1] if pick is not None else None
        base = pick.inputs[0] if pick is not None else None
        if isinstance(index, Node) and isinstance(base, Node):
            turned = index.op == "invert" and isinstance(index.inputs[0], Node)
            found.append((base, index.inputs[0] if turned else index, turned))
    alike = len(found) == 2 and found[0][0] is found[1][0] and found[0][1] is found[1][1]
    return found[0][1] if alike and found[0][2] is not found[1][2] else None


def _fitted(index: Value) -> Node | None:
    """Of ``[: len(x)]``: the selection by which some rows of ``x`` were left out."""
    if not isinstance(index, Obj) or index.kind != "builtins.slice" or index.args[0] not in (None, 0):
        return None
    count = index.args[1]
    at = count.inputs[0] if isinstance(count, Node) and count.op in ("len", "size") and count.inputs else None
    for _ in range(12):
        if not isinstance(at, Node):
            return None
        if at.op in LEAVES_OUT or (at.op == "getitem" and len(at.inputs) > 1 and _tests(at.inputs[1])):
            return at
        at = at.inputs[0] if at.op in CONVERTS and at.inputs else None
    return None


def _tests(index: Value) -> bool:
    return isinstance(index, Node) and any(n.op in TESTS for n in near(index, 4))


def _taken(run: Rehearsing, values: list[Node], order: Node) -> list[Node]:
    """Where rows are taken by these numbers on the ways to the values."""
    found = {id(n): n for v in values for p in paths(run, v) for n in p.nodes if n.inputs[1:2] == (order,)}
    return [n for n in found.values() if n.op in ("getitem", "index_select", "take")]


__all__ = ["cut_to_fit", "parted_and_joined", "shuffled_between"]
