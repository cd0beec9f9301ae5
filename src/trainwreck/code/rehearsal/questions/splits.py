"""Are training and evaluation apart? What is computed from which part of the data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from trainwreck.code.facts import HELD, TRAIN, names
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.assigned import assigned_names
from trainwreck.code.rehearsal.questions.paths import (
    CREATES,
    MASKS,
    ORDERS,
    Path,
    Step,
    evaluated,
    meets,
    paths,
    trained,
)
from trainwreck.code.rehearsal.questions.spans_apart import cut_off, drawn_up_to, from_one_end, share_masked
from trainwreck.code.rehearsal.questions.summaries import decided, drawn_as_bytes, summaries
from trainwreck.code.rehearsal.questions.windows import window_of
from trainwreck.core.evidence import Severity

CHOSEN = frozenset(
    """cat concatenate hstack concat r_ setdiff1d delete isin in1d nonzero where flatnonzero difference either setitem
    sum""".split()
)
"""What makes one selection of several parts, or of what is left."""
UNKNOWN = 1 << 40
"""Stands for a length that isn't known: more than any number of rows."""
UNSEEN = frozenset(["held", "held_out", "heldout", "hold_out", "unseen"])
MAX_WAYS = 48
"""Ways on each side: some questions compare all of one side with all of the other."""
T = TypeVar("T")


class Sides:
    """The data that training and evaluation use, as ways from arrays."""

    def __init__(self, run: Rehearsing) -> None:
        self.train: list[Path] = []
        self.held: list[tuple[Event, Path]] = []
        seen, taught, judged = set[int](), list[Node](), list[Node]()
        for _, node in trained(run):
            if id(node) not in seen:
                seen.add(id(node))
                taught.append(node)
                self.train += paths(run, node)
        for event, node in evaluated(run):
            if id(node) not in seen:
                seen.add(id(node))
                judged.append(node)
                self.held += [(event, path) for path in paths(run, node)]
        self.train = _differing(self.train, lambda path: path)
        self.held = _differing(self.held, lambda pair: pair[1])
        self.train_nodes = {id(n): n for n in ancestors(tuple(taught))}
        self.held_nodes = {id(n): n for n in ancestors(tuple(judged))}


def _differing(ways: list[T], path: Callable[[T], Path]) -> list[T]:
    """At most ``MAX_WAYS`` of them, in their order: those from other arrays or by other indexings come first."""
    if len(ways) <= MAX_WAYS:
        return ways
    first: dict[tuple[object, ...], int] = {}
    for at, way in enumerate(ways):
        first.setdefault((id(path(way).root), *keys(path(way))), at)
    others = dict.fromkeys(range(len(ways))).keys() - set(first.values())
    kept = [*first.values(), *sorted(others)]
    return [ways[at] for at in sorted(kept[:MAX_WAYS])]


def sides(run: Rehearsing) -> Sides:
    memo = run.project.memo.setdefault("rehearsal: sides", {})
    if id(run) not in memo:
        memo[id(run)] = Sides(run)
    found: Sides = memo[id(run)]
    return found


def keys(path: Path) -> tuple[object, ...]:
    return tuple(step.key for step in path.fixed)


def statistics_of_everything(run: Rehearsing) -> Iterator[Answer]:
    """A mean, a scale, a fitted transform that was computed before the split, from rows that are evaluated later.

    Said only where a split follows: a way of the training data that leaves out part of the rows, and a way of
    evaluated data that goes on from the same rows."""
    both = sides(run)
    if not both.held or not both.train:
        return
    used = {**both.train_nodes, **both.held_nodes}
    way = {id(n) for _, p in both.held for n in p.nodes} if len(both.held) < MAX_WAYS else both.held_nodes.keys()
    told: set[int] = set()
    held_by_model = [n for n in run.nodes if n.op in ("sub", "div") and _is_buffer(n.inputs[-1])]
    for node in (*used.values(), *held_by_model):
        for summary in summaries(run, node):
            array = summary.array
            if id(array) in told or _of_a_turn(array):
                continue
            if id(node) not in way and id(array) in both.held_nodes:
                continue  # inputs that targets are made from by a formula: the mean is one of its constants
            told.add(id(array))
            if drawn_as_bytes(node, used.values()):
                continue
            for source in paths(run, array):
                if any(step.moving for step in source.steps):
                    continue
                held = next((p for _, p in both.held if _continues(p, source) and not _learned(both, p)), None)
                train = next((p for p in both.train if _continues(p, source)), None)
                if held is None or train is None or keys(held) == keys(train) or _overlap(train, held):
                    continue
                split = held.fixed[len(source.fixed)].place
                place = decided(summary, split)
                if place is None:
                    continue
                text = "this is computed from all rows, before those for the evaluation are taken out"
                mild: Severity | None = "suggestion" if _judged_apart(run, both, array) else None
                yield Answer(place, text, tuple(p for p in (split,) if p is not None), severity=mild)
                break


def _is_buffer(value: Value) -> bool:
    """True for a figure that a module holds: its inputs are standardised in ``forward``."""
    return isinstance(value, Node) and value.op == "buffer"


def _of_a_turn(array: Node) -> bool:
    """True for a window that a loop cuts by its own number: the first one looks as if its ends were written out."""
    place = array.place[0] if array.op == "getitem" and array.place is not None else None
    cut = names(place.slice) if isinstance(place, ast.Subscript) and isinstance(place.slice, ast.Slice) else set()
    return any(isinstance(t.node, ast.For) and names(t.node.target) & cut for t in array.turns)


def _judged_apart(run: Rehearsing, both: Sides, array: Node) -> bool:
    """True where other data, of which nothing is trained on, are scaled with the same figures and evaluated as well."""
    taught = {id(p.root) for p in both.train}
    others = [p for _, p in both.held if id(p.root) not in taught]
    return any(s.array is array for p in others for n in p.nodes for s in summaries(run, n))


def _continues(path: Path, source: Path) -> bool:
    """True where ``path`` starts as ``source`` does, and goes on with a part of its rows."""
    mine, other = keys(path), keys(source)
    return path.root is source.root and len(mine) > len(other) and mine[: len(other)] == other


def _learned(both: Sides, held: Path) -> bool:
    """True for rows that are a part of those that are trained on (a look back before the forecast): not held out."""
    return any(
        train.root is held.root
        and train.fixed
        and keys(held)[: len(train.fixed)] == keys(train)
        and all(step.key for step in train.fixed)
        for train in both.train
    )


def held_out_in_training(run: Rehearsing) -> Iterator[Answer]:
    """Evaluated rows that are trained on too: their way goes on from one of the training's, or overlaps it.

    A part of the training data is often evaluated for comparison: said only where the name that the part is given
    speaks of held out data, or where nothing else of these data is ever evaluated."""
    both, told = sides(run), set[int]()
    for event, held in both.held:
        for train in both.train:
            if held.root is not train.root or not held.fixed:
                continue
            inside = _continues(held, train) and _same_rows(train, held)
            if (not inside and not _overlap(train, held)) or _put_together(train, held):
                continue
            if not inside and (_aimed_at(train, held, both.train) or _looks_back(train, held)):
                continue
            step = held.fixed[len(train.fixed)] if inside else _parting(train, held)
            if step.place is None or id(step.place[0]) in told:
                continue
            names = assigned_names(run, step.place)
            spoken_of = any(HELD.search(n) for n in names.split() + _written_at(step.place))
            if not spoken_of and not UNSEEN & set(names.split()) and not (inside and _all_cut_off(both, held)):
                continue
            if learned_without_targets(run, train):
                continue
            told.add(id(step.place[0]))
            place, other = step.place, _parting(held, train).place if train.fixed else None
            if not inside and other is not None and _after(other, place):
                place, other = other, place  # the part that is cut second should have left out the first
            text = "these rows are held out for the evaluation, and the training uses them too"
            yield Answer(place, text, tuple(p for p in (other, event.place) if p is not None))


def _all_cut_off(both: Sides, held: Path) -> bool:
    """True where only what follows a row is evaluated of these data, by whatever way, and batches of all are taught."""
    ways = [p for _, p in both.held if p.root is held.root]
    whole = all(p.steps and not p.fixed for p in both.train if p.root is held.root)
    return whole and all(p.fixed and cut_off(p.fixed[0].key) for p in ways)


def learned_without_targets(run: Rehearsing, path: Path) -> bool:
    """True for rows that go into losses which compare them with no data at all (an entropy, by how much they were
    turned): a network that adapts itself to inputs as they come."""
    learned = (e for e in run.tape if e.name == "backward")
    events = [e for e in learned if any(n is path.nodes[-1] for n in ancestors(e.subject))]
    targets = [n for e in events for _, _, outside in meets(e.subject) for n in outside]
    roots = [p.root for n in targets for p in paths(run, n)]
    return bool(events) and all(r.op in CREATES and r is not path.root for r in roots)


def _put_together(train: Path, held: Path) -> bool:
    """True where the training takes parts of the order that the held out rows are one part of: all the other folds."""
    theirs = {id(n) for s in held.steps for i in parts(s.index) for n in near(i, 200) if n.op in ORDERS}
    for index in (i for s in train.steps for i in parts(s.index)):
        behind = near(index, 200)
        if any(_sifted(item) for n in behind for item in n.inputs):
            return True
        if any(n.op in CHOSEN for n in behind) and any(id(n) in theirs for n in behind):
            return True
    return False


def _sifted(value: object) -> bool:
    """True for a list of those numbers that pass a test."""
    node = value.place[0] if isinstance(value, Items) and value.place is not None else None
    return isinstance(node, ast.ListComp | ast.GeneratorExp) and any(g.ifs for g in node.generators)


def same_data(run: Rehearsing) -> Iterator[Answer]:
    """A loader whose name speaks of held out data, over the very data set that is trained on."""
    fed = tuple(node for _, node in trained(run))
    learned = {id(n.owner): n.owner for n in ancestors(fed) if n.op == "batch"}
    taught = {
        id(d)
        for o in learned.values()
        if isinstance(o, Obj)
        for d in [o.get("dataset", 0)]
        if isinstance(d, Obj | Node)
    }
    wholes = {id(d.get("dataset", 0)) for o in learned.values() if isinstance(o, Obj) for d in [o.get("dataset", 0)]
              if isinstance(d, Obj) and d.name == "Subset"}  # fmt: skip
    told: set[int] = set()
    for event, node in evaluated(run):
        for batch in (n for n in ancestors(node) if n.op == "batch"):
            loader = batch.owner
            if not isinstance(loader, Obj) or id(loader) in learned or id(loader) in told or loader.place is None:
                continue
            if any(loader.options.get(name) is not None for name in ("sampler", "batch_sampler")):
                continue  # it may take other rows of the same data
            told.add(id(loader))
            names = assigned_names(run, loader.place).split()
            whole = id(loader.get("dataset", 0)) in wholes  # of which a part is trained on
            if (
                (whole or id(loader.get("dataset", 0)) in taught)
                and any(map(HELD.search, names))
                and not any(map(TRAIN.search, names))
            ):
                text = "this loader goes through the data that are trained on, and its name speaks of others"
                yield Answer(loader.place, text, (event.place,) if event.place is not None else ())


def _same_rows(train: Path, held: Path) -> bool:
    """True unless something between decides about the rows that is not seen (a mask of the training)."""
    if drawn_up_to([s.index for s in train.steps if s.moving], [s.index for s in held.fixed]):
        return False
    return all(step.key for step in train.fixed) and all(n.op != "either" for n in train.nodes)


def _overlap(train: Path, held: Path) -> bool:
    """True for two slices of the same rows with written bounds that have rows in common."""
    one, other = train.fixed, held.fixed
    if train.root is held.root and share_masked(keys(train), keys(held)):
        return True
    if train.root is not held.root or len(one) != len(other) or not one or keys(train)[:-1] != keys(held)[:-1]:
        return False
    if from_one_end(one[-1].key, other[-1].key):
        return True
    a, b = bounds(one[-1].key), bounds(other[-1].key)
    if a is None or b is None or a == b:
        return False
    if any(v is not None and v < 0 for v in (*a, *b)):
        rows = rows_before(one)
        if rows is None:
            return False
        a, b = _from_start(a, rows), _from_start(b, rows)
    (start_a, end_a), (start_b, end_b) = a, b
    ends = [end for end in (end_a, end_b) if end is not None]
    return not ends or max(start_a or 0, start_b or 0) < min(ends)


def _from_start(ends: tuple[int | None, int | None], rows: int) -> tuple[int | None, int | None]:
    start, end = (max(0, v + rows) if v is not None and v < 0 else v for v in ends)
    return start, end


def rows_before(steps: Sequence[Step]) -> int | None:
    """How many numbers an order has of which the last step takes a part: ``order[-500:]``."""
    order = steps[-2].index if len(steps) > 1 else None
    known = isinstance(order, Node) and not order.shape.open and len(order.shape.dims) == 1
    return order.shape.dims[0] if known and isinstance(order, Node) else None


def _parting(train: Path, held: Path) -> Step:
    """The step at which the held out rows part from the training's; a mask stands where it is made."""
    both = zip(train.fixed, held.fixed, strict=False)
    step = next((h for t, h in both if t.key != h.key), held.fixed[-1])
    made = step.index.place if isinstance(step.index, Node) and step.index.op in MASKS else None
    return Step(step.key, made, step.index, step.moving) if made is not None else step


def _aimed_at(train: Path, held: Path, all_trained: Sequence[Path]) -> bool:
    """True for targets of a series, the training's inputs moved on by some steps, that reach into the held out rows
    by no more than these steps: ``x[:n]`` and ``x[1:n + 1]`` beside ``x[n:]``."""
    mine, theirs = bounds(train.fixed[-1].key), bounds(held.fixed[-1].key)
    if mine is None or theirs is None or mine[1] is None or theirs[1] is None:
        return False
    common = min(mine[1], theirs[1]) - max(mine[0] or 0, theirs[0] or 0)
    for other in all_trained:
        if other.root is not train.root or keys(other)[:-1] != keys(train)[:-1] or not other.fixed:
            continue
        inputs = bounds(other.fixed[-1].key)
        if inputs is None or inputs[1] is None:
            continue
        ahead = mine[1] - inputs[1]
        if common <= ahead == (mine[0] or 0) - (inputs[0] or 0):
            return True
    return False


def _looks_back(train: Path, held: Path) -> bool:
    """True where the held out rows begin in the training's by less than a window that is cut out of them: so much is
    only looked back at from the first element that is to be predicted."""
    mine, theirs = bounds(train.fixed[-1].key), bounds(held.fixed[-1].key)
    if mine is None or theirs is None or mine[1] is None or not theirs[0] or theirs[0] <= (mine[0] or 0):
        return False
    if theirs[1] is not None and theirs[1] <= mine[1]:
        return False
    cuts = [n for n, node in enumerate(held.nodes) if _cut_by(node, held.fixed[-1].index)]
    after = held.nodes[cuts[-1] + 1 :] if cuts else ()
    return any(mine[1] - theirs[0] < size for n in after if (size := _length(n)) is not None)


def _cut_by(node: Node, index: Value) -> bool:
    given = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    return index is not None and (given is index or (isinstance(given, tuple) and bool(given) and given[0] is index))


def _length(node: Node) -> int | None:
    """The length of the windows that are cut here."""
    if node.op in ("unfold", "sliding_window_view"):
        given = node.options.get("size", (*node.inputs, None, None)[2 if node.op == "unfold" else 1])
        return given if isinstance(given, int) else None
    window = window_of(node)
    if window is not None:
        between = window.last.less(window.first)
        return None if window.single else UNKNOWN if between is None else between + 1
    index = node.inputs[1] if node.op == "getitem" and node.turns and len(node.inputs) > 1 else None
    cut = bounds(("slice", *index.args)) if isinstance(index, Obj) and index.kind == "builtins.slice" else None
    return cut[1] - (cut[0] or 0) if cut is not None and cut[1] is not None else None


def _after(one: Place, other: Place) -> bool:
    """True where one statement stands below another in the same function."""
    return one[1] is other[1] and getattr(one[0], "lineno", 0) > getattr(other[0], "lineno", 0)


def bounds(key: object) -> tuple[int | None, int | None] | None:
    if not isinstance(key, tuple) or len(key) != 4 or key[0] != "slice" or key[3] not in (None, 1):
        return None
    start, end = key[1], key[2]
    if (start is None or isinstance(start, int)) and (end is None or isinstance(end, int)):
        return start, end
    return None


def _written_at(place: Place) -> list[str]:
    """The names of what is picked, and of what picks it: ``x[val]``."""
    names = [n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(place[0])
             if isinstance(n, ast.Name | ast.Attribute)] if isinstance(place[0], ast.Subscript) else []  # fmt: skip
    return [] if any(map(TRAIN.search, names)) else [n.lower() for n in names]


__all__ = ["bounds", "held_out_in_training", "keys", "rows_before", "same_data", "sides", "statistics_of_everything"]
