"""Running averages that look back further than the run is long: of weights, and of the statistics of batch norm."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.averaging import settled
from trainwreck.code.rehearsal.questions.counts import times
from trainwreck.code.rehearsal.questions.paths import feeding
from trainwreck.code.rehearsal.questions.places import once
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import number_of

LOOKS_BACK = 0.5
"""Updates times the share of the new value: below it more than 60% (exp(-0.5)) of the average are its first value."""
ORDINARY = 0.1
"""Torch's momentum of batch norm: a run that is too short for it is a trial."""
SLIGHT = 1e-6
LOADS = frozenset(["load_state_dict", "from_pretrained"])


def steps_of(run: Rehearsing) -> float | None:
    """How many updates the weights get; None where that is not known."""
    events = [e for e in run.tape if e.name == "step" and is_optimizer(e.subject)]
    made = {id(e.subject): e.subject for e in events}
    counts = [times(run, [e for e in events if e.subject is optimizer]) for optimizer in made.values()]
    known = [c for c in counts if c is not None]
    return max(known) if known and len(known) == len(counts) else None


def weights_stay(run: Rehearsing) -> Iterator[Answer]:
    """An average of weights that still holds mostly the first ones when the run ends.

    Copies that the training itself uses (the keys of contrastive learning, a target network) move slowly on purpose."""
    total = steps_of(run)
    if not total:
        return
    told: set[int] = set()
    for kept, place in _averages(run):
        if id(place[0]) in told or kept >= 1 or total * (1 - kept) >= LOOKS_BACK:
            continue
        told.add(id(place[0]))
        text = f"with a decay of {kept:g} the average still holds the first weights after {total:.0f} updates"
        yield Answer(_written(run, kept) or place, text, (place,))


def _averages(run: Rehearsing) -> Iterator[tuple[float, Place]]:
    """The share that averages of weights keep at each update, with the place of it."""
    used = _in_training(run)
    found: dict[int, list[tuple[float, Place] | None]] = {}
    for node in run.nodes:
        if node.op == "param" and node.writes and id(node) not in used:
            for kept, new, place in settled(node):
                if abs(kept + new - 1) < SLIGHT:
                    yield kept, place
        elif node.op in ("lerp", "add") and not node.grad and node.turns and node.place is not None:
            shares = _shares(node)
            known = shares is not None and abs(sum(shares) - 1) < SLIGHT
            same = found.setdefault(id(node.place[0]), [])
            same.append((shares[0], node.place) if shares is not None and known else None)
    for updates in found.values():
        if len(set(updates)) == 1 and updates[0] is not None:
            yield updates[0]
    for obj in run.objects:
        kept_by = _of_library(run, obj)
        if kept_by is not None and obj.place is not None:
            yield kept_by, obj.place


def _in_training(run: Rehearsing) -> set[int]:
    """``id`` of the parameters of copies whose outputs a loss is computed from."""
    held: set[int] = set()
    used = feeding(run)
    for event in run.tape:
        if event.name != "forward" or not isinstance(event.subject, Obj) or event.subject.copy_of is None:
            continue
        if isinstance(event.result, Node) and id(event.result) in used:
            held |= {id(p) for p in run.parameters(event.subject)[0]}
    return held


def _shares(node: Node) -> tuple[float, float] | None:
    """(of the old value, of the new one) where a value moves towards a parameter."""
    inputs = node.inputs
    if node.op == "lerp" and len(inputs) > 2 and (share := number_of(inputs[2])) is not None:
        return (1 - share, share) if _weights(inputs[1]) and not _weights(inputs[0]) else None
    if node.op != "add" or len(inputs) < 2:
        return None
    sides = [_factor(i) for i in inputs[:2]]
    alpha = node.options.get("alpha", 1.0)
    if not isinstance(alpha, int | float):
        return None
    sides[1] = (sides[1][0], sides[1][1] * alpha if sides[1][1] is not None else None)
    for (old, kept), (new, share) in (sides, sides[::-1]):
        if kept is not None and share is not None and _weights(new) and not _weights(old) and 0 < kept < 1:
            return kept, share
    return None


def _factor(value: Value) -> tuple[Value, float | None]:
    """(what is multiplied, with which known number)."""
    if isinstance(value, Node) and value.op == "mul" and len(value.inputs) > 1:
        for number, rest in ((value.inputs[1], value.inputs[0]), value.inputs[:2]):
            if (known := number_of(number)) is not None:
                return rest, known
        return value, None
    return value, 1.0


def _weights(value: Value) -> bool:
    """True for a parameter as it is now; a copy is none."""
    at = value
    for _ in range(6):
        if not isinstance(at, Node):
            return False
        if at.op in ("param", "state"):
            return True
        if at.op not in STRUCTURE or at.op == "clone" or not at.inputs:
            return False
        at = at.inputs[0]
    return False


def _of_library(run: Rehearsing, obj: Obj) -> float | None:
    """The decay of torch's ``AveragedModel`` and of timm's averages."""
    if obj.name == "AveragedModel" and "swa_utils" in obj.kind:
        function = obj.get("multi_avg_fn", 3) or obj.get("avg_fn", 2)
        if isinstance(function, Node) and function.op in ("get_ema_multi_avg_fn", "get_ema_avg_fn"):
            return number_of(function.get("decay", 0, 0.999))
        return _by_function(run, function, obj) if isinstance(function, Function) else None
    if obj.name in ("ModelEma", "ModelEmaV2", "ModelEmaV3") and obj.kind.startswith("timm."):
        warms = obj.options.get("use_warmup") not in (None, False)
        return None if warms else number_of(obj.get("decay", 1, 0.9999))
    return None


def _by_function(run: Rehearsing, function: Function, obj: Obj) -> float | None:
    """What ``avg_fn(average, new, count)`` keeps of the average."""
    if obj.place is None or len(function.node.args.args) != 3:
        return None
    before = len(run.tape)
    old, new, count = (run.node(op, (), obj.place) for op in ("clone", "param", "counter"))
    found = run.call(function, [old, new, count], {}, obj.place, function.frame)
    del run.tape[before:]
    shares = _shares(found) if isinstance(found, Node) else None
    return shares[0] if shares is not None and any(n is old for n in near(found, 8)) else None


def _written(run: Rehearsing, kept: float) -> Place | None:
    """Where the decay (or what is left of 1) stands in the program."""
    for number in (kept, round(1 - kept, 10), round(kept, 10)):
        if (place := once(run, number)) is not None:
            return place
    return None


def statistics_stay(run: Rehearsing) -> Iterator[Answer]:
    """Running statistics of batch norm that are used by an evaluation, and move too little in the whole run."""
    total = steps_of(run)
    if not total or not any(e.name == "eval" or (e.name == "train" and e.args == (False,)) for e in run.tape):
        return
    if any(e.name in LOADS for e in run.tape) or any("pretrained" in o.options for o in run.objects):
        return
    lines: set[int] = set()
    for layer in run.objects:
        if not layer.name.startswith("BatchNorm") or layer.copy_of is not None:
            continue
        share, place = _momentum(run, layer)
        if share is None or not 0 < share < ORDINARY or total * share >= LOOKS_BACK or place is None:
            continue
        if layer.get("track_running_stats", 4) is False or not _used(run, layer):
            continue
        line = getattr(place[0], "lineno", 0)
        if line not in lines:
            lines.add(line)
            text = f"with a momentum of {share:g} the running statistics hardly move in {total:.0f} updates"
            text = f"{text}: evaluation normalises by their first values"
            yield Answer(once(run, share) or place, text, (place,))


def _momentum(run: Rehearsing, layer: Obj) -> tuple[float | None, Place | None]:
    """The share of the new batch, and where it was set."""
    changes = [e for e in run.tape if e.name == "set" and e.subject is layer and e.args[:1] == ("momentum",)]
    if changes:
        return number_of(changes[-1].args[1] if len(changes[-1].args) > 1 else None), changes[-1].place
    return number_of(layer.get("momentum", 2)), layer.place


def _used(run: Rehearsing, layer: Obj) -> bool:
    return any(_runs(e, layer) for e in run.tape) or any(n.owner is layer for n in _trained(run))


def _runs(event: Event, layer: Obj) -> bool:
    return event.name == "forward" and event.subject is layer and bool(event.turns)


def _trained(run: Rehearsing) -> Iterator[Node]:
    for event in run.tape:
        if event.name == "backward":
            yield from ancestors(event.subject)
