"""Are kept weights copies, do loaded ones arrive, and does a job that goes on get back all that it had?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Table, Value, candidates, is_module
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps

VIEWS = frozenset(["state", "detach", "data"])
"""What shares its memory with the parameter that it came from."""
AVERAGES = frozenset(["lerp_", "mul_", "add_"])
"""What moves an average of weights, which no optimizer steps."""


def by_reference(run: Rehearsing) -> Iterator[Answer]:
    """Weights that were kept without a copy, went on being trained, and are used as if they were the old ones."""
    for event in run.tape:
        if event.name not in ("load_state_dict", "save"):
            continue
        for table in candidates(event.get("state_dict", 0)):
            for node in _states(table, deep=event.name == "save"):
                param = _parameter(node, on_cpu(run))
                first = origin(node, on_cpu(run))
                if param is None or first is None or first.place is None:
                    continue
                moved = _moved(run, first, event, param)
                if not moved or (event.name == "save" and event.turns):
                    continue
                text = "the state is kept by reference: it changes with further training"
                yield Answer(first.place, text, tuple(e.place for e in (moved[0], event) if e.place is not None))
                break


def _moved(run: Rehearsing, first: Node, event: Event, param: Node) -> list[Event]:
    """Steps of the parameter between the moment at which its state is kept and that at which it is used.

    A state that only some turns of a loop keep (the best one) is followed by the steps of the turns after it."""
    mine = [s for s in steps(run) if s.serial < event.serial and any(p is param for p in held(s))]
    mine += [w for w in param.writes if w.name in AVERAGES and w.turns and w.serial < event.serial]
    moved = [s for s in mine if s.serial > first.serial]
    if moved or not first.maybe > event.maybe:
        return moved
    loops = {id(t.node) for t in first.turns} - {id(t.node) for t in event.turns}
    return [s for s in mine if any(id(t.node) in loops for t in s.turns)]


def _states(value: Value, deep: bool) -> list[Node]:
    """An entry of a state; ``deep``: also of the states that what is saved holds under a name."""
    if not isinstance(value, Table):
        return []
    found = [v for v in value.entries.values() if isinstance(v, Node)][:1]
    inner = [c for v in value.entries.values() for c in candidates(v) if isinstance(c, Table)] if deep else []
    return [*found, *(n for table in inner for n in _states(table, False))]


def origin(node: Node, cpu: bool = False) -> Node | None:
    """The entry of a state that shares its memory with ``node``. ``cpu``: all stays there, ``x.cpu()`` is no copy."""
    while (node.op in VIEWS or (cpu and node.op == "cpu")) and node.op != "state":
        first = node.inputs[0] if node.inputs else None
        if not isinstance(first, Node):
            return None
        if first.op == "param":
            return node
        node = first
    return node if node.op == "state" else None


def _parameter(node: Node, cpu: bool) -> Node | None:
    first = origin(node, cpu)
    return first.inputs[0] if first is not None and isinstance(first.inputs[0], Node) else None


DEVICES = pattern(r"cuda|\bmps\b|device|\bxpu\b|accelerat")


def on_cpu(run: Rehearsing) -> bool:
    """True where the program speaks of no other device."""
    return not any(DEVICES.search(walked.top.module.text) for walked in run.project.walked.values())


def skipped(run: Rehearsing) -> Iterator[Answer]:
    """Weights that arrive under other names than those of the network, and are passed over in silence."""
    for event in run.tape:
        if event.name != "load_state_dict" or not is_module(event.subject) or event.place is None:
            continue
        given = [c for c in candidates(event.get("state_dict", 0)) if isinstance(c, Table)]
        names = {name for name, _ in run.named(event.subject)}
        if len(given) != 1 or not names or not all(isinstance(k, str) for k in given[0].entries):
            continue
        keys = {str(k) for k in given[0].entries if not str(k).startswith("?")}
        missing, extra = names - keys, keys - names
        if event.get("strict", 1, True) is False and keys and missing and extra:
            ends = [sorted(k.rpartition(".")[2] for k in some) for some in (missing, extra)]
            alike = len(missing) > 2 and ends[0] == ends[1]  # the same layers by other names
            if not names & keys or alike or any(_renamed(k, m) for k in extra for m in missing):
                one = min(extra)
                text = f"the names do not match ({one} here, {min(missing)} in the network): strict=False skips them"
                yield Answer(event.place, text, ())
        elif not missing and _unchanged(run, event, given[0]):
            yield Answer(event.place, "none of the loaded weights is among these: their names do not match", ())


def _renamed(key: str, name: str) -> bool:
    """True if two names differ only in their first part, or by a prefix."""
    if key.endswith("." + name) or name.endswith("." + key):
        return True
    tail, other = key.partition(".")[2], name.partition(".")[2]
    return bool(tail) and tail == other and "." in tail


def _unchanged(run: Rehearsing, event: Event, given: Table) -> bool:
    """True if a network is given back its own state although weights were loaded to be filtered into it."""
    own = {id(p) for _, p in run.named(event.subject)}
    values = [v for v in given.entries.values() if isinstance(v, Node)]
    all_own = bool(values) and all((p := _parameter(v, False)) is not None and id(p) in own for v in values)
    loaded = [e for e in run.tape if e.name == "load" and e.serial < event.serial and isinstance(e.result, Table)]
    if not all_own or not loaded:
        return False
    first, param = origin(values[0]), _parameter(values[0], False)
    return first is not None and param is not None and not _moved(run, first, event, param)


def _saved(run: Rehearsing) -> Iterator[tuple[Event, Table, list[Event]]]:
    """Loads of a file that the program wrote, with its table and what took something out of it."""
    for event in run.tape:
        if event.name == "load" and isinstance(event.result, Table):
            yield event, event.result, [e for e in run.tape if e.name == "load_state_dict" and e.serial > event.serial]


def _source(value: Value) -> Value:
    """What an entry of a file was the state of."""
    if isinstance(value, Node) and value.op == "loaded" and value.inputs:
        inner = value.inputs[0]
        return inner.inputs[0] if isinstance(inner, Node) and inner.op == "state_dict" and inner.inputs else inner
    return None


def _resumed(run: Rehearsing) -> Iterator[tuple[Place, Table, set[int], list[Event]]]:
    """Jobs that go on: weights are read back, and optimizers step afterwards. With the entries that were used."""
    for event, table, loads in _saved(run):
        used: set[int] = set()
        network: Event | None = None
        for load in loads:
            for given in candidates(load.args[0] if load.args else None):
                used.add(id(given))
                if network is None and is_module(load.subject) and any(given is v for v in table.entries.values()):
                    network = load
        training = any(s.serial > event.serial and s.turns for s in steps(run))
        kinds = [_source(v) for v in table.entries.values()]
        states = any(is_optimizer(k) or is_scheduler(k) for k in kinds)
        if network is not None and network.place is not None and training and states:
            yield network.place, table, used, loads


def _forgotten(run: Rehearsing, wanted: str) -> Iterator[Answer]:
    for place, table, used, loads in _resumed(run):
        others = [
            v for v in table.entries.values() if id(v) in used and _source(v) is not None and not isinstance(v, Table)
        ]
        for key, value in table.entries.items():
            kind = _source(value)
            fits = is_optimizer(kind) if wanted == "optimizer" else is_scheduler(kind)
            if fits and id(value) not in used and (others or _counts_on(run, table)):
                active = any(
                    e.name == "step"
                    and isinstance(e.subject, Obj)
                    and e.subject.kind == kind.kind
                    and e.serial > loads[0].serial
                    for e in run.tape
                )
                if active:
                    yield Answer(place, f"'{key}' is in the file and is not read back: its state begins anew", ())


def _counts_on(run: Rehearsing, table: Table) -> bool:
    """True if a number of the file is set again, or a loop with steps begins at it: the count goes on."""
    numbers = ids(v for v in table.entries.values() if isinstance(v, Node))
    begun = (v for s in steps(run) for t in s.turns if isinstance(t.over, Items) for v in parts(t.over))
    if any(id(n) in numbers for v in begun for n in near(v, 6)):
        return True
    return any(e.name == "set" and any(id(c) in numbers for c in candidates(e.args[1])) for e in run.tape)


def optimizer_forgotten(run: Rehearsing) -> Iterator[Answer]:
    yield from _forgotten(run, "optimizer")


def scheduler_forgotten(run: Rehearsing) -> Iterator[Answer]:
    yield from _forgotten(run, "scheduler")
