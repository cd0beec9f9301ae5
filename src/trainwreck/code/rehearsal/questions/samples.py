"""Samples that share something that was drawn once for several of them: are they divided as a group?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import ORDERS, RANDOM, Path, meets
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.splits import sides

IDS = frozenset(["repeat", "repeat_interleave", "integers", "randint", "floor_divide", "tile", "choice"])
DRAWN = RANDOM - ORDERS - {"multinomial"}
JOINED = frozenset(["stack", "array", "asarray", "concatenate", "cat", "tensor", "as_tensor", "vstack"])
LENGTHS = frozenset(["len", "size", "attribute", "numel"])
NEAR = 400


def divided_at_random(run: Rehearsing) -> Iterator[Answer]:
    """Rows of one group on both sides of a random split: what the group was drawn with is in all of them.

    Not meant: groups that are the classes to be told apart, and splits that the groups go into."""
    both = sides(run)
    told: set[int] = set()
    for _, held in both.held:
        for train in both.train:
            if held.root is not train.root:
                continue
            found = _random_cut(train, held)
            if found is None or found[0].place is None or id(found[0].place[0]) in told:
                continue
            cut, index = found
            assert cut.place is not None
            group = next((g for node in held.nodes if (g := _group(node)) is not None), None)
            if group is None or _goes_into(group, index) or _is_the_class(run, group):
                continue
            told.add(id(cut.place[0]))
            text = "rows that share what was drawn for their group can land on both sides of this random split"
            yield Answer(cut.place, text, tuple(p for p in (_place(group),) if p is not None))


def _random_cut(train: Path, held: Path) -> tuple[Node, Value] | None:
    """The draw by which the rows of the two sides are told apart, and what it decides."""
    shuffled: tuple[Node, Value] | None = None
    for mine, other in zip(train.fixed, held.fixed, strict=False):
        for step in (other, mine):
            drawn = next((n for n in islice(ancestors(step.index, through=_no_test), NEAR) if _draws(n)), None)
            if drawn is not None:
                shuffled = drawn, step.index
        if mine.key != other.key:
            return shuffled
    return None


def _no_test(node: Node) -> bool:
    """False for a comparison: ``df.time < 9`` is no draw, whatever other columns of the table were made of."""
    return node.op not in ("lt", "gt", "le", "ge", "eq", "ne")


def _draws(node: Node) -> bool:
    if node.op in ("lt", "gt", "le", "ge"):
        return any(isinstance(n, Node) and n.op in ("rand", "random", "uniform") for n in node.inputs)
    return node.op in ("permutation", "randperm", "shuffle") or (node.op == "split" and node.place is not None)


Group = tuple[Node, tuple[Node, ...]]
"""What the members of a group share, and the values that say which group they belong to."""


def _group(node: Node) -> Group | None:
    """Rows that were made group by group, each with a draw of the group's own."""
    first, second = (*node.inputs, None, None)[:2]
    if node.op == "getitem" and isinstance(first, Node) and isinstance(second, Node) and second.op in IDS:
        drawn = next((n for n in near(first, 30) if n.op in DRAWN and n is not second), None)
        return (drawn, (second,)) if drawn is not None and not second.turns else None
    if node.op in JOINED and isinstance(first, Items) and first.items:
        element = first.items[-1]
        return _of_loops(element) if isinstance(element, Node) else None
    return None


def _of_loops(element: Node) -> Group | None:
    """An element that was made in two loops, from a draw of the outer one."""
    around = element.turns
    if len(around) < 2 or not around[-1].generic:
        return None
    for node in ancestors(element, through=lambda n: n.turns == around):
        shared = len(node.turns) < len(around) and node.turns and node.turns == around[: len(node.turns)]
        if shared and any(n.op in DRAWN and n.turns == node.turns for n in near(node, 30)):
            loop = around[len(node.turns) - 1]
            counters = tuple(n for n in parts(loop.over))
            return node, counters
    return None


def _goes_into(group: Group, index: Value) -> bool:
    """True where the numbers of the groups (not how many there are) decide about the rows."""
    ids = {id(n) for n in group[1]}
    return any(id(n) in ids for n in ancestors(index, through=lambda n: n.op not in LENGTHS))


def _is_the_class(run: Rehearsing, group: Group) -> bool:
    """True where the number of the group is what is to be predicted."""
    ids = {id(n) for n in group[1]}
    for event in backwards(run):
        for _, _, outside in meets(event.subject):
            if any(id(n) in ids for node in outside for n in _made_of(node)):
                return True
    return False


def _made_of(value: Node) -> Iterator[Node]:
    """What the elements of a value are made of: not which of them there are, nor what was looked up for them."""
    queue, seen = [value], {id(value)}
    while queue and len(seen) < 2000:
        node = queue.pop()
        yield node
        if node.op in LENGTHS or node.op in DRAWN:
            continue
        inner = node.inputs[:1] if node.op in ("getitem", "index_select", "element", "batch", "take") else node.inputs
        for item in (n for i in inner for n in parts(i)):
            if id(item) not in seen:
                seen.add(id(item))
                queue.append(item)


def _place(group: Group) -> Place | None:
    return group[0].place
