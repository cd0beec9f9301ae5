"""A job that goes on: what changes while it trains and is not read back from the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainwreck.code.calls import last_name, written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Table, Value, candidates, is_module
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps

MOVES = frozenset(["mul_", "add_", "lerp_", "copy_", "inplace", "sub_", "addcmul_", "setitem"])
"""What changes a tensor in place."""
RANDOM = frozenset(["get_rng_state", "get_rng_state_all", "getstate", "get_state"])
TENSORS = frozenset(
    ["clone", "detach", "mul", "add", "lerp", "mul_", "add_", "state", "param", "deepcopy", "copy", "either"]
)
ACTS = frozenset(["step", "update", "scaler_step", "scale", "forward", "update_parameters"])
TELLS = pattern(r"print|log|write|info|debug|add_scalar|save|append|format", re.IGNORECASE)
"""Functions that only tell or keep something."""


@dataclass
class Resume:
    """The network was read back from a file that the program writes, and training goes on."""

    network: Event
    loaded: Event
    entries: dict[str, Value]
    """What the file holds, by key: what was given to ``save``."""
    used: set[int] = field(default_factory=set)
    """The values of the file that something was computed from or restored with, by ``id``."""
    values: dict[str, Value] = field(default_factory=dict)
    restored: dict[str, Place] = field(default_factory=dict)
    """Where what stands under a key is given back its state."""

    def place_of(self, key: str) -> Place | None:
        """Where the key would be read: after the one that stands before it in the file."""
        keys = list(self.entries)
        before = keys[: keys.index(key)] if key in keys else []
        return next((self.restored[k] for k in reversed(before) if k in self.restored), self.network.place)


def resumes(run: Rehearsing) -> Iterator[Resume]:
    """Each place where a job goes on, once."""
    told: set[int] = set()
    for event in run.tape:
        if event.name != "load" or event.place is None or id(event.place[0]) in told:
            continue
        found = _of_table(run, event) if isinstance(event.result, Table) else _of_file(run, event)
        if found is None or not any(s.serial > event.serial and s.turns for s in steps(run)):
            continue
        kinds = [_source(v) for v in found.entries.values()]
        if any(is_optimizer(k) or is_scheduler(k) for k in kinds):
            told.add(id(event.place[0]))
            yield found


def _of_table(run: Rehearsing, event: Event) -> Resume | None:
    """Of a file that was written before in this rehearsal."""
    table = event.result
    loads = [e for e in run.tape if e.serial > event.serial and e.name not in ("load", "set")]
    inside = {id(v): k for k, v in table.entries.items() if isinstance(k, str)}
    network = _network(loads, inside.keys())
    if network is None:
        return None
    used = {id(p) for e in loads for a in (*e.args, *e.options.values()) for c in candidates(a) for p in (c, *parts(c))}
    used |= {id(p) for n in run.nodes if n.serial > event.serial for i in n.inputs for p in parts(i)}
    used |= {id(c) for e in run.tape if e.name == "set" for c in candidates(e.args[1])}
    entries = {k: _given(v) for k, v in table.entries.items() if isinstance(k, str)}
    values = {k: v for k, v in table.entries.items() if isinstance(k, str)}
    return Resume(network, event, entries, used, values, _restorations(loads, inside))


def _given(value: Value) -> Value:
    """What was saved, of what comes back."""
    if isinstance(value, Table):
        return Table({k: _given(v) for k, v in value.entries.items()}, value.more)
    return value.inputs[0] if isinstance(value, Node) and value.op == "loaded" and value.inputs else value


def _of_file(run: Rehearsing, event: Event) -> Resume | None:
    """Of a file that an earlier job wrote: it holds what this one saves at its end."""
    taken: dict[int, str] = {}
    for node in run.nodes:
        by_key = node.op in ("getitem", "get", "item", "pop") and isinstance((*node.inputs, None, None)[1], str)
        if by_key and node.serial > event.serial and _from(node.inputs[0], event):
            taken[id(node)] = node.inputs[1]
    network = _network([e for e in run.tape if e.serial > event.serial], taken.keys())
    if network is None:
        return None
    for save in run.tape:
        table = save.get("obj", 0) if save.name == "save" and save.serial > event.serial else None
        if isinstance(table, Table) and set(taken.values()) <= {str(k) for k in table.entries}:
            entries = {k: v for k, v in table.entries.items() if isinstance(k, str)}
            read = {id(v) for k, v in entries.items() if k in taken.values()}
            loads = [e for e in run.tape if e.serial > event.serial]
            return Resume(network, event, entries, read, entries, _restorations(loads, taken))
    return None


def _restorations(loads: list[Event], keys: dict[int, str]) -> dict[str, Place]:
    found: dict[str, Place] = {}
    for load in loads:
        if load.name in ("load_state_dict", "set_rng_state") and load.place is not None:
            for value in candidates(load.args[0] if load.args else None):
                if id(value) in keys:
                    found.setdefault(keys[id(value)], load.place)
    return found


def _from(value: Value, event: Event) -> bool:
    return isinstance(value, Node) and value.op == "load" and value.place is not None and value.place == event.place


def _network(loads: list[Event], keys: object) -> Event | None:
    assert hasattr(keys, "__contains__")
    for load in loads:
        of_network = load.name == "load_state_dict" and is_module(load.subject) and load.place is not None
        if of_network and any(id(c) in keys for c in candidates(load.get("state_dict", 0))):
            return load
    return None


def _source(value: Value) -> Value:
    """The object that a value is the state of."""
    if isinstance(value, Node) and value.op == "state_dict" and value.inputs:
        return value.inputs[0]
    return value


def state_forgotten(run: Rehearsing) -> Iterator[Answer]:
    """Something that changes during training is in the file and is never read, or starts anew beside the network."""
    for resume in resumes(run):
        for key, value, why, place in _forgotten(run, resume):
            if not (isinstance(value, Node) and value.op in RANDOM):
                yield Answer(place, f"'{key}' is in the file and is not read back: {why}")
                return
        yield from _copied_before(run, resume)


def draws_anew(run: Rehearsing) -> Iterator[Answer]:
    """The state of a random generator is in the file and is never read."""
    for resume in resumes(run):
        for key, value, why, place in _forgotten(run, resume):
            if isinstance(value, Node) and value.op in RANDOM:
                yield Answer(place, f"'{key}' is in the file and is not read back: {why}", severity="warning")
                return


def _forgotten(run: Rehearsing, resume: Resume) -> Iterator[tuple[str, Value, str, Place]]:
    """(key, what was saved, why it counts, where it would be read) of what nothing reads back."""
    read = _keys_read(run)
    for key, value in resume.entries.items():
        given = resume.values.get(key)
        traced = isinstance(resume.loaded.result, Table) and isinstance(given, Table)
        if id(given) in resume.used or (key in read and not traced) or _inside_used(given, resume.used):
            continue
        why = _changes(run, resume, key, value)
        place = resume.place_of(key)
        if why and place is not None:
            yield key, value, why, place


def _inside_used(value: Value, used: set[int]) -> bool:
    return isinstance(value, Table) and any(id(v) in used for v in value.entries.values())


def _keys_read(run: Rehearsing) -> set[str]:
    """Texts by which something is taken from a table anywhere in the program."""
    if "keys-read" not in run.project.memo:
        found: set[str] = set()
        for walked in run.project.walked.values():
            for scope in walked.scopes:
                for node in scope.nodes:
                    key: ast.expr | None = None
                    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                        key = node.slice
                    elif isinstance(node, ast.Call) and last_name(node.func) in ("get", "pop", "setdefault"):
                        key = node.args[0] if node.args else None
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        found.add(key.value)
        run.project.memo["keys-read"] = found
    keys: set[str] = run.project.memo["keys-read"]
    return keys


# ---------------------------------------------------------------------- does it change?
def _changes(run: Rehearsing, resume: Resume, key: str, value: Value) -> str:
    """Words for what is lost where the value goes on changing after the seam; empty where it can't be told."""
    source = _source(value)
    after = resume.loaded.serial
    if isinstance(source, Obj):
        if is_optimizer(source) or is_scheduler(source):
            return ""  # told by the rules for these
        names = {name for name, _ in run.named(source)} if is_module(source) else set()
        if names and any(isinstance(v, Table) and names == set(v.entries) for v in resume.entries.values()):
            return ""  # its state is in the file too
        acts = any(e.serial > after and _acts(e, source) for e in run.tape)
        return "its state begins anew" if acts else ""
    if isinstance(value, Table):
        if _moved(run, resume, {str(k) for k in value.entries}):
            return "these weights begin anew"
        tensors = [v for v in value.entries.values() if isinstance(v, Node)]
        if len(tensors) > 1 and all(_averaged(v) for v in tensors):
            return "this average of weights begins anew"
        return ""
    if isinstance(value, Node) and value.op in RANDOM:
        return "random numbers are drawn anew"
    return _record(run, resume, key)


def _acts(event: Event, source: Obj) -> bool:
    """True for a call in a loop on an object of this kind, or a step through such a scaler."""
    if not event.turns:
        return False
    scaler = event.state.get("scaler")
    subject = event.subject if event.name in ACTS else scaler
    return isinstance(subject, Obj) and subject.kind == source.kind


def _averaged(node: Node) -> bool:
    """True for what was computed from an older value of itself and a weight."""
    return node.op in TENSORS and any(n.op in ("param", "state") for n in near(node, 20))


def _moved(run: Rehearsing, resume: Resume, names: set[str]) -> bool:
    """True where weights of these names, which nothing restores, change after the seam."""
    after = resume.loaded.serial
    own = {id(p) for p in run.parameters(resume.network.subject)[0]}
    loaded = _restored(run, after)
    stepped = {id(p) for s in steps(run) if s.serial > after and s.turns for p in held(s)}
    for node in run.nodes:
        if node.op != "param" or id(node) in own | loaded:
            continue
        if not any(node.name == n or n.endswith("." + node.name) or node.name.endswith("." + n) for n in names):
            continue
        writes = [e for e in node.writes if e.serial > after and e.turns and e.name in MOVES]
        if writes or id(node) in stepped:
            return True
    return False


def _restored(run: Rehearsing, after: int) -> set[int]:
    """Parameters of modules that are given a state after the seam, outside of the loop."""
    return {
        id(p)
        for e in run.tape
        if e.name == "load_state_dict" and e.serial > after and is_module(e.subject)
        for p in run.parameters(e.subject)[0]
    }


def _record(run: Rehearsing, resume: Resume, key: str) -> str:
    """The best value so far: it is compared to in the loop and replaced there."""
    return "the best value so far begins anew" if any(_kept_best(run, n) for n in _names(run, key)) else ""


def _names(run: Rehearsing, key: str) -> Iterator[str]:
    """What the program writes into a dict under this key, where it is a name."""
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                for at, item in _entries(node):
                    known = isinstance(at, ast.Constant) and at.value == key
                    if isinstance(item, ast.BinOp) and isinstance(item.right, ast.Constant):
                        item = item.left  # ``"epoch": self.epoch + 1``
                    if known and isinstance(item, ast.Name | ast.Attribute):
                        yield written(item)


def _entries(node: ast.AST) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """The keys of a dict with what is written under them, and of ``table[key] = value``."""
    if isinstance(node, ast.Dict):
        yield from zip(node.keys, node.values, strict=True)
    elif isinstance(node, ast.Assign):
        yield from ((t.slice, node.value) for t in node.targets if isinstance(t, ast.Subscript))


def _asked_otherwise(resume: Resume) -> Place | None:
    """Where a key is asked for, with a default, that is not in the file."""
    place = resume.loaded.place
    if place is None:
        return None
    found = [
        (node, place[1])
        for node in place[1].nodes
        if isinstance(node, ast.Call)
        and last_name(node.func) in ("get", "pop")
        and len(node.args) == 2
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
        and node.args[0].value not in resume.entries
    ]
    return found[0] if len(found) == 1 else None


def counter_forgotten(run: Rehearsing) -> Iterator[Answer]:
    """The number that a loop counts up to its end is in the file and is never read."""
    read = _keys_read(run)
    for resume in resumes(run):
        for key in resume.entries:
            given = resume.values.get(key)
            if key in read or (id(given) in resume.used and not isinstance(given, int | float)):
                continue
            place = _asked_otherwise(resume) or resume.place_of(key)
            if place is not None and any(_bounds_loop(run, n) or decides(run, n) for n in _names(run, key)):
                yield Answer(place, f"'{key}' is in the file and is not read back: counting starts at zero")
                return


def _bounds_loop(run: Rehearsing, name: str) -> bool:
    """True for a name that a ``while`` tests and its body counts, or that a ``range`` starts from."""
    nodes = (n for walked in run.project.walked.values() for scope in walked.scopes for n in scope.nodes)
    for node in nodes:
        if isinstance(node, ast.While) and any(written(n) == name for n in ast.walk(node.test)):
            counted = any(isinstance(n, ast.AugAssign) and written(n.target) == name for n in ast.walk(node))
        else:
            ranged = isinstance(node, ast.Call) and last_name(node.func) == "range" and len(node.args) > 1
            counted = ranged and isinstance(node, ast.Call) and written(node.args[0]) == name
        if counted:
            return True
    return False


def decides(run: Rehearsing, name: str) -> bool:
    """True for a name that is counted up one by one, and by which something other than a text is worked out."""
    nodes = [(n, scope) for walked in run.project.walked.values() for scope in walked.scopes for n in scope.nodes]
    counted = any(
        isinstance(n, ast.AugAssign)
        and isinstance(n.op, ast.Add)
        and written(n.target) == name
        and written(n.value) == "1"
        for n, _ in nodes
    )
    if not counted:
        return False
    for node, scope in nodes:
        if isinstance(node, ast.Compare | ast.BinOp) and any(written(n) == name for n in ast.walk(node)):
            above = list(run.project.ancestors(node, scope))
            if not any(isinstance(a, ast.JoinedStr | ast.FormattedValue) or _only_tells(a) for a in above):
                return True
    return False


def _only_tells(node: ast.AST) -> bool:
    """True for a call that prints or logs, and for a branch that does nothing else."""
    if isinstance(node, ast.Call):
        return bool(TELLS.search(written(node.func)))
    if isinstance(node, ast.IfExp):
        return _only_tells(node.body)
    if not isinstance(node, ast.If):
        return False
    calls = [n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    return bool(calls) and all(isinstance(s, ast.Expr) for s in node.body) and any(_only_tells(c) for c in calls)


def _kept_best(run: Rehearsing, name: str) -> bool:
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                if isinstance(node, ast.If) and isinstance(node.test, ast.Compare):
                    compared = any(written(n) == name for n in (node.test.left, *node.test.comparators))
                    stored = [t for s in node.body for n in ast.walk(s) if isinstance(n, ast.Assign) for t in n.targets]
                    targets = [e for t in stored for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
                    if compared and any(written(t) == name for t in targets):
                        return True
    return False


# ---------------------------------------------------------------------- beside the file
def _copied_before(run: Rehearsing, resume: Resume) -> Iterator[Answer]:
    """An average that was copied from the network before it was read back, and goes on from there."""
    network, place = resume.network.subject, resume.network.place
    after = resume.network.serial
    restored = _restored(run, resume.loaded.serial)
    for obj in run.objects:
        if not is_module(obj) or obj.copy_of is not network or obj.serial > after or place is None:
            continue
        mine = run.parameters(obj)[0]
        if not mine or any(id(p) in restored for p in mine):
            continue
        writes = [e for e in mine[0].writes if e.serial > after and e.name in MOVES]
        if writes and all(e.turns for e in writes) and not _set_again(writes):
            proof = (obj.place,) if obj.place is not None else ()
            yield Answer(place, "an average was copied from the network before this, and is not set to it", proof)
            return


def _set_again(writes: list[Event]) -> bool:
    """True where the copy is set to the network as a whole first."""
    return writes[0].name == "copy_" and len(writes[0].turns) < 2
