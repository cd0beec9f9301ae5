"""Steps of an environment that are put aside: do state, action and the state after it belong to one step?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Turn, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.asked_states import first_call, put_aside, selected, states
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE
from trainwreck.code.rehearsal.questions.targets import fits
from trainwreck.code.rehearsal.questions.terms import parameters_behind
from trainwreck.core.row import Row

KEEPS = frozenset(["append", "add", "put", "appendleft", "push", "store", "remember"])
ARRAYS = frozenset(["ravel", "flatten", "array", "concatenate", "copy", "astype", "stack", "getitem"])
LEAST = 3
"""A record of a step has at least a state, an action and what follows."""


MOST_VALUES, MOST_RECORDS = 24, 24
"""More than a step of an environment has, and more than a program puts them aside in the rehearsal: other tables."""


class Record(Row):
    """What was put aside together; ``place`` is where the loop over steps asks for it."""

    values: tuple[Node, ...]
    place: Place
    turns: tuple[Turn, ...]


def records(run: Rehearsing) -> list[Record]:
    """In order: the tuples that go into a list, and the elements of several arrays that are written at one index."""
    if "records" not in run.memo:
        found = [r for e in run.tape if e.name in KEEPS and e.turns and e.place is not None for r in [_listed(
            e.args, (*e.stack, e.place), e.turns)] if r is not None]  # fmt: skip
        apart: dict[tuple[object, ...], list[tuple[Node, Place, tuple[Turn, ...]]]] = {}
        for event in run.tape:
            only = event.args[0] if event.name in KEEPS and len(event.args) == 1 else None
            turns = _of_steps(event.turns)
            if isinstance(only, Node) and turns and event.place is not None:
                seen = (p for p in reversed((*event.stack, event.place)) if p[1] is turns[-1].scope)
                apart.setdefault(tuple(map(id, turns)), []).append((only, next(seen, event.place), turns))
        for lists in apart.values():
            if len(lists) >= LEAST:
                found.append(Record(tuple(n for n, _, _ in lists), lists[0][1], lists[0][2]))
        written: dict[tuple[object, ...], list[Node]] = {}
        for node in run.nodes:
            if node.op == "setitem" and node.turns and len(node.inputs) > 2 and node.stack and node.place is not None:
                index = node.inputs[2]
                at = index if isinstance(index, int) else id(index)
                written.setdefault((at, id(node.stack[-1][0]), tuple(map(id, node.turns))), []).append(node)
        for group in written.values():
            values = tuple(n for g in group for n in parts(g.inputs[1]))
            if len({_array(g) for g in group}) >= min(LEAST, len(group)) and len(values) >= LEAST:
                found.append(Record(values, group[0].stack[-1], group[0].turns))
        run.memo["records"] = [r for r in found if len(r.values) <= MOST_VALUES][:MOST_RECORDS]
    made: list[Record] = run.memo["records"]
    return made


def _array(node: Node) -> int:
    """Equal for what is written into one array, also in several branches."""
    at: Value = node
    for _ in range(60):
        if not isinstance(at, Node) or at.op not in ("setitem", "either", "counter"):
            break
        at = next((i for i in at.inputs if isinstance(i, Node)), None)
    return id(at)


def _of_steps(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Without the loops over a few things that are written out (the lists that one step is put into)."""
    while turns and isinstance(turns[-1].over, tuple):
        turns = turns[:-1]
    return turns


def _listed(args: tuple[Value, ...], seen: tuple[Place, ...], turns: tuple[Turn, ...]) -> Record | None:
    given = args[0] if len(args) == 1 else args
    if isinstance(given, Obj):
        given = tuple(given.attributes.values())
    if not isinstance(given, tuple) or len(given) < LEAST:
        return None
    values = tuple(v for v in given if isinstance(v, Node))
    # a memory has a method of its own: the step is put together in the loop that calls it
    scope = turns[-1].scope
    place = next((p for p in reversed(seen) if p[1] is scope), seen[-1])
    return Record(values, place, turns) if len(values) >= LEAST - 1 else None


class Step(Row):
    """A record in which the action is known: what it was chosen from, and what came of it, as far as they are in it."""

    record: Record
    action: Node
    before: tuple[Node, ...]
    after: tuple[Node, ...]


def taken(run: Rehearsing) -> list[Step]:
    if "steps taken" not in run.memo:
        run.memo["steps taken"] = _taken(run)
    made: list[Step] = run.memo["steps taken"]
    return made


def _taken(run: Rehearsing) -> list[Step]:
    found: list[Step] = []
    for record in records(run):
        action = _action(record)
        if action is None:
            continue
        behind = {id(n) for n in ancestors(action)}
        after = tuple(v for v in record.values if v is not action and _wide(v) and v.serial > action.serial)
        before = tuple(v for v in record.values if v is not action and id(v) in behind)
        if after:
            found.append(Step(record, action, before, after))
    return found


def _action(record: Record) -> Node | None:
    """The first that was computed with the last call of a network: states hold what earlier calls led to."""
    layers = [(max((n.serial for n in ancestors(v) if n.op in RAW), default=0), v) for v in record.values]
    last = max((serial for serial, _ in layers), default=0)
    return min((v for serial, v in layers if serial == last), key=lambda v: v.serial) if last else None


def moved_early(run: Rehearsing) -> Iterator[Answer]:
    """The state is set to the next one before both are put aside: they are the same."""
    for step in (s for s in taken(run) if any(t.generic for t in s.record.turns)):
        twice = [v for v in step.after if sum(v is w for w in step.record.values) > 1 and _wide(v)]
        if twice and not any(_wide(v) for v in step.before):
            text = "the state and the one that follows it are the same here: the state was moved on before"
            yield Answer(step.record.place, text)
            return


def stays_put(run: Rehearsing) -> Iterator[Answer]:
    """The state before the action is put aside twice: also where the one that follows belongs."""
    for record in records(run):
        if not any(t.generic for t in record.turns):
            continue
        action = _action(record)
        twice = [v for v in record.values if v is not action and _wide(v) and sum(v is w for w in record.values) > 1]
        if action is None or not twice or any(_wide(v) and v.serial > action.serial for v in record.values):
            continue
        behind = {id(n) for n in ancestors(action)}
        if any(id(c) in behind for v in twice for c in (v, *candidates(v))):
            yield Answer(record.place, "the state before the action stands also where the one that follows belongs")
            return


def never_moved(run: Rehearsing) -> Iterator[Answer]:
    """Each step starts from the state that the first one started from."""
    made = taken(run)
    for step in made:
        wide = [v for v in step.before if _wide(v)]
        first = next((s for s in made if s.record.place[0] is step.record.place[0] and s is not step), None)
        if not wide or first is None or not _later(step.record) or _later(first.record):
            continue
        same = all(any(v is w for w in first.before) for v in wide)
        moves = not any(v is w for v in step.after for w in first.after)
        if same and moves:
            text = "the state is the same in every turn: it is never set to the one that follows"
            yield Answer(step.record.place, text)
            return


def _later(record: Record) -> bool:
    return bool(record.turns) and record.turns[-1].generic


def exchanged(run: Rehearsing) -> Iterator[Answer]:
    """The state after the action is trained on as the one before it, and the other way round."""
    told = [s for s in taken(run) if any(t.generic for t in s.record.turns)]
    for one in fits(run) if told else ():
        mine = _roots(one.output, run)
        following = _roots(one.found.value, run)
        for step in told:
            late = [v for v in step.after if _wide(v)]
            if not late or not any(_wide(v) for v in step.before):
                continue
            if all(id(v) in mine and id(v) not in following for v in late):
                text = "the state after the action stands where the one before it belongs"
                yield Answer(step.record.place, text, tuple(p for p in (one.event.place,) if p is not None))
                return


def _roots(value: Node, run: Rehearsing) -> set[int]:
    """What was put aside of the data that networks are asked about on the way to a value."""
    asked = states(value)
    by_id = [n for n in run.nodes if id(n) in asked]
    return {id(c) for node in by_id for r in _chosen_from(node) for c in (r, *candidates(r))} | asked


def _chosen_from(node: Node) -> list[Node]:
    found: list[Node] = []
    queue: list[Node] = [node]
    seen: set[int] = set()
    while queue and len(seen) < 300:
        at = queue.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        found.append(at)
        if at.op in STRUCTURE | {"array", "asarray", "stack", "setitem", "either", "tensor", "cat", "concatenate"}:
            queue += [p for i in at.inputs[:2] for p in parts(i)]
    return found


def _wide(value: Node) -> bool:
    """True for an observation: an array, or what an environment returns first."""
    if value.op == "either":
        return any(_wide(c) for c in candidates(value) if isinstance(c, Node))
    if value.shape.dims:
        return True
    if value.shape.open and value.op in ARRAYS:
        return True
    return value.op == "part" and value.inputs[1:] == (0,)


def same_state(run: Rehearsing) -> Iterator[Answer]:
    """The value that is discounted is that of the very state that the output is for."""
    late = {id(v) for step in taken(run) for v in step.after}
    early = {id(v) for step in taken(run)[-1:] for v in step.before}
    for one in fits(run):
        mine, following = states(one.output), states(one.found.value)
        if not mine or not following or not following <= mine or selected(one.found.value):
            continue
        roots = _roots(one.found.value, run) & (late | early)
        wrong = one.output if roots and not roots & early and roots & late else one.found.value
        scope = one.event.place if wrong is one.output else one.found.node.place
        place = first_call(wrong, scope) or one.found.node.place
        if place is not None:
            text = "one state is used on both sides here: the target needs the value of the state after it"
            yield Answer(place, text, tuple(p for p in (one.found.node.place, one.event.place) if p is not None))
            return


def steps_apart(run: Rehearsing) -> Iterator[Answer]:
    """States are picked by one draw of numbers, and the rewards that should belong to them by another one."""
    for one in fits(run):
        mine, theirs = _draw(one.output), _draw(one.found.reward)
        if mine is None or theirs is None or mine is theirs or theirs.place is None:
            continue
        if any(n is mine for n in ancestors(theirs)) or any(n is theirs for n in ancestors(mine)):
            continue
        text = "each array is asked for rows of its own draw: state, action and reward are no longer of one step"
        yield Answer(theirs.place, text, (one.event.place,) if one.event.place is not None else ())
        return


def _draw(value: Value) -> Node | None:
    """The random numbers by which rows of what was put aside are picked."""
    for node in ancestors(value, through=lambda n: n.op not in ("param", "setitem")):
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        drawn = isinstance(index, Node) and index.op in ("randint", "integers", "choice")
        if drawn and isinstance(index, Node) and isinstance(node.inputs[0], Node) and not node.grad:
            return index
    return None


def old_state_asked(run: Rehearsing) -> Iterator[Answer]:
    """The next action in a target is chosen from the state before."""
    for one in fits(run):
        mine = states(one.output)
        for node in ancestors(one.found.value):
            if node.op not in ("cat", "concat", "concatenate"):
                continue
            items = [p for i in node.inputs[:1] for p in parts(i)]
            plain = [i for i in items if put_aside(i)]
            chosen = [i for i in items if not put_aside(i) and parameters_behind(i)]
            if not plain or any(id(i) in mine for i in plain):
                continue
            for action in chosen:
                asked = states(action)
                layer = next((n for n in ancestors(action) if n.op in RAW), None)
                if asked and asked <= mine and layer is not None:
                    scope = node.place[1] if node.place is not None else None
                    seen = [p for p in (*layer.stack, layer.place) if p is not None]
                    place = next((p for p in seen if p[1] is scope), seen[-1])
                    yield Answer(place, "the next action is chosen here from the state before, not from the next one")
                    return


__all__ = [
    "exchanged",
    "moved_early",
    "never_moved",
    "old_state_asked",
    "records",
    "same_state",
    "stays_put",
    "steps_apart",
]
