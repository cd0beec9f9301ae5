"""Samples that share something that was drawn once for several of them: are they divided as a group?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Table, Turn, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import ORDERS, RANDOM, Path, counted_table, meets, moving
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
            group = next((g for node in held.nodes if (g := _group(run, node)) is not None), None)
            if group is None or _goes_into(group, index) or _is_the_class(run, group) or _is_known(run, group):
                continue
            told.add(id(cut.place[0]))
            text = "rows that share what was drawn for their group can land on both sides of this random split"
            yield Answer(cut.place, text, tuple(p for p in (_place(group),) if p is not None))


def _is_known(run: Rehearsing, group: Group) -> bool:
    """True where the network is told which group a row belongs to (an embedding, a rate that is looked up): it is meant
    for these groups, and meets them again."""
    ids = {id(n) for n in group[1]}
    for node in run.nodes:
        index = node.inputs[0] if node.op == "embedding" else node.inputs[1] if len(node.inputs) > 1 else None
        looked_up = node.op == "getitem" and counted_table(node.inputs[0])
        if (node.op == "embedding" or looked_up) and any(id(n) in ids for n in near(index, 12)):
            return True
    return False


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


def _group(run: Rehearsing, node: Node) -> Group | None:
    """Rows that were made group by group, each with a draw of the group's own."""
    first, second = (*node.inputs, None, None)[:2]
    second = _column(second)
    if node.op == "either":
        found = [_of_loops(run, n) for n in node.inputs if isinstance(n, Node)]
        return found[-1] if found and isinstance(node.inputs[0], Node) else None
    if node.op == "getitem" and isinstance(first, Node) and isinstance(second, Node) and second.op in IDS:
        drawn = next((n for n in near(first, 30) if n.op in DRAWN and n is not second), None)
        return (drawn, (second,)) if drawn is not None and not second.turns else None
    if node.op in JOINED and isinstance(first, Items) and first.items:
        element = first.items[-1]
        return _of_loops(run, element) if isinstance(element, Node) else None
    return None


def _column(value: Value) -> Value:
    """What a column of a table that was written out holds."""
    if isinstance(value, Node) and value.op in ("attribute", "getitem") and isinstance(value.inputs[0], Node):
        frame = value.inputs[0]
        name = value.name if value.op == "attribute" else value.inputs[-1]
        table = frame.inputs[0] if frame.op == "DataFrame" and frame.inputs else None
        return table.entries.get(name, value) if isinstance(table, Table) and isinstance(name, str) else value
    return value


def _of_loops(run: Rehearsing, element: Node) -> Group | None:
    """An element that was made in two loops, from a draw of the outer one or that its number picks."""
    around = element.turns
    if len(around) < 2 or not around[-1].generic:
        return None
    if (whole := _cut_from(element)) is not None:
        return whole
    for node in ancestors(element, through=lambda n: n.turns == around):
        shared = len(node.turns) < len(around) and node.turns and node.turns == around[: len(node.turns)]
        if shared and any(n.op in DRAWN and n.turns == node.turns for n in near(node, 30)):
            loop = around[len(node.turns) - 1]
            counters = tuple(n for n in parts(loop.over))
            return node, counters
    return next((g for turn in around[:-1] if (g := _picked(run, element, turn)) is not None), None)


def _picked(run: Rehearsing, element: Node, outer: Turn) -> Group | None:
    """``style[p]`` of rows that were drawn before the loops, one for each turn of the outer one, where the inner one
    notes the number of the group beside each sample: groups that nothing notes may be just how the data are made."""
    counters = tuple(n for n in parts(outer.over) if n.op == "counter")
    ids = {id(c) for c in counters}
    for pick in ancestors(element, through=lambda n: outer in n.turns):
        row = pick.inputs[1] if pick.op == "getitem" and len(pick.inputs) > 1 else None
        row = row[0] if isinstance(row, tuple) and row else row
        base = pick.inputs[0] if id(row) in ids else None
        if not isinstance(base, Node) or base.turns or not any(n.op in DRAWN for n in near(base, 16)):
            continue
        for event in (e for e in run.tape if e.name == "append" and e.turns == element.turns):
            if any(id(n) in ids for value in parts(event.args) for n in _made_of(value)):
                return pick, counters
    return None


def _cut_from(element: Node) -> Group | None:
    """A window that the inner loop cuts, at a place of its own, out of what the outer loop comes to: one of many
    recordings, each of which gives many windows."""
    around = element.turns
    whole, cut = (*element.inputs, None, None)[:2]
    if element.op != "getitem" or not isinstance(whole, Node) or len(around) < 2:
        return None
    inner, outer = around[-1].over, around[-2].over
    bounds = cut.args[:2] if isinstance(cut, Obj) and cut.kind == "builtins.slice" else ()
    moved = any(moving(b) for b in bounds)
    if not moved or not isinstance(inner, Node | Items) or _writes_out(outer):
        return None
    counters = tuple(n for n in parts(outer) if n.op == "counter")
    return (whole, counters) if any(whole is n for n in _elements(outer)) else None


def _elements(value: Value) -> Iterator[Node]:
    """The values that a loop over ``value`` comes to."""
    inner = value.source if isinstance(value, Items) and isinstance(value.source, Items) else value
    yield from parts(inner)


def _writes_out(value: Value) -> bool:
    return isinstance(value, Items) and not value.more and value.length is None and len(value.items) < 3


def _goes_into(group: Group, index: Value) -> bool:
    """True where the numbers of the groups (not how many there are) decide about the rows."""
    ids = {id(n) for n in group[1]}
    rows = index if isinstance(index, Node) and index.op == "split" else None  # ``train_test_split`` of these rows
    behind = list(ancestors(index, through=lambda n: n.op not in LENGTHS and n is not rows and not _splitter(n)))
    given = [n.get("groups", 3) for n in behind if _splitter(n)]
    return any(id(n) in ids for n in (*behind, *ancestors(tuple(given), through=lambda n: n.op not in LENGTHS)))


def _splitter(node: Node) -> bool:
    """True for what a splitter of scikit-learn yields: the rows and labels it is given don't keep groups together."""
    return node.op == "split" and "model_selection" in str(getattr(node.inputs[0] if node.inputs else "", "kind", ""))


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
