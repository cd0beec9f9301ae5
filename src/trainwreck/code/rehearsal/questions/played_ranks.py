"""Ranks that one process plays one after the other: does each get the mean of the gradients before it steps?

A mean (or sum) over the gradients of weights that several networks have under one name, each with an optimizer of its
own, is made to be written back. Silent where weights are exchanged too, and where the mean goes into something that is
not understood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, reached, steps

KEEPS = frozenset(
    """stack cat add sub sum mean div mul clone detach data view reshape flatten view_as reshape_as getitem element to
    float half bfloat16 contiguous unsqueeze squeeze setitem copy_ copy add_ div_ mul_ sub_ true_divide concatenate
    accumulate split part parameters_to_vector state from_numpy numpy cpu cuda either""".split()
)
"""What keeps gradients gradients: their mean is of the same kind. A norm or an angle is for looking at."""
COPIES = frozenset(["clone", "deepcopy", "float", "double", "half", "add", "sub", "mul", "div", "zeros_like", "stack"])
"""What makes a tensor of its own: writing into it changes nothing else."""
SAME = frozenset(["detach", "data", "view", "view_as", "reshape", "flatten", "getitem", "contiguous"])
"""What shares its memory with what it came from."""


@dataclass(eq=False)
class Means:
    """Which values are joined from the gradients of several ranks, and what was written into gradients."""

    of: dict[int, frozenset[int]] = field(default_factory=dict)
    """By ``id`` of a value: the parameters whose gradients it was made of."""
    joined: list[Node] = field(default_factory=list)
    written: list[tuple[Event, Node, Value]] = field(default_factory=list)
    """A write into the gradient of a parameter, in order."""
    lost: list[Event] = field(default_factory=list)
    """Writes of a joined gradient into a copy that nothing else uses."""


def apart(run: Rehearsing) -> Iterator[Answer]:
    """Ranks whose gradients are joined, and that step with gradients of their own all the same."""
    moved = [s for s in steps(run) if s.turns]
    if len({id(s.subject) for s in moved}) < 2 or any(e.full.endswith("init_process_group") for e in run.tape):
        return
    ranks = ranks_of(moved)
    if not ranks or _exchanged(run, ranks):
        return
    means = means_of(run, ranks)
    if not means.joined or _handed_on(run, means):
        return
    for step in moved:
        for param in held(step):
            answer = _alone(run, means, step, param) if id(param) in ranks else None
            if answer is not None:
                yield answer
                return


def ranks_of(moved: list[Event]) -> dict[int, tuple[object, ...]]:
    """By ``id`` of a parameter the name that it shares with parameters that other optimizers step."""
    found: dict[tuple[object, ...], dict[int, set[int]]] = {}
    for step in moved:
        for param in held(step):
            if param.name and not param.shape.open:
                by_optimizer = found.setdefault((param.name, param.shape.dims), {})
                by_optimizer.setdefault(id(step.subject), set()).add(id(param))
    shared = {k: set().union(*v.values()) for k, v in found.items() if len(v) > 1}
    return {p: k for k, ids in shared.items() if len(ids) > 1 for p in ids}


def _exchanged(run: Rehearsing, ranks: dict[int, tuple[object, ...]]) -> bool:
    """True if weights are written in a loop: averages of weights, or one rank's weights for all."""
    for node in (n for n in run.nodes if id(n) in ranks):
        if any(w.turns and w.name != "requires_grad" for w in node.writes):
            return True
    return any(e.name in ("load_state_dict", "vector_to_parameters") and e.turns for e in run.tape)


def means_of(run: Rehearsing, ranks: dict[int, tuple[object, ...]]) -> Means:
    found = Means()
    for node in run.nodes:
        if node.op == "grad" and len(node.inputs) == 1 and id(node.inputs[0]) in ranks:
            found.of[id(node)] = frozenset([id(node.inputs[0])])
        elif node.op in KEEPS or node.op.rstrip("_") in KEEPS:
            inner = [
                found.of[id(p)] for v in (*node.inputs, *node.options.values()) for p in parts(v) if id(p) in found.of
            ]
            if inner:
                found.of[id(node)] = mine = frozenset().union(*inner)
                if len(mine) > 1 and len({ranks[p] for p in mine}) < len(mine):
                    found.joined.append(node)
    mixed = {id(n) for n in found.joined}
    for event in run.tape:
        subject = event.subject
        if not isinstance(subject, Node) or not event.args:
            continue
        if event.name == "set_grad":
            found.written.append((event, subject, event.args[0]))
        elif event.name.endswith("_") and not event.name.endswith("__"):
            base = _memory(subject)
            if base.op == "grad" and base.inputs and isinstance(base.inputs[0], Node):
                found.written.append((event, base.inputs[0], event.args))
            elif base.op in COPIES and any(id(p) in mixed for p in parts(event.args)) and id(base) in found.of:
                found.lost.append(event)
    return found


def _memory(node: Node) -> Node:
    """What holds the memory that a write into ``node`` changes."""
    while node.op in SAME and node.inputs and isinstance(node.inputs[0], Node):
        node = node.inputs[0]
    return node


def _handed_on(run: Rehearsing, means: Means) -> bool:
    """True if a joined gradient goes into something that isn't understood and may write it anywhere."""
    mixed = {id(n) for n in means.joined}
    return any(node.op in OPAQUE and any(id(p) in mixed for v in node.inputs for p in parts(v)) for node in run.nodes)


def _alone(run: Rehearsing, means: Means, step: Event, param: Node) -> Answer | None:
    """What is wrong where ``step`` uses a gradient of ``param`` that no joined one was written into."""
    before = [b for b in backwards(run) if b.serial < step.serial and any(p is param for p in reached(b))]
    if not before or not any(t in step.turns for t in before[-1].turns):
        return None
    since = before[-1].serial
    mixed = {id(n) for n in means.joined}
    later = [b.serial for b in backwards(run) if b.serial > step.serial and any(p is param for p in reached(b))]
    until = later[0] if later else float("inf")
    mine = [n for n in means.joined if since < n.serial < until and id(param) in means.of[id(n)]]
    writes = [w for w, p, v in means.written if p is param and since < w.serial < until and _of(v, mixed)]
    proof = (step.place,) if step.place is not None else ()
    first = [w for w in writes if w.serial < step.serial]
    if first:
        return _in_turn(means, first[0], param, until, proof)
    if not mine or step.maybe:
        return None
    if writes and (place := _where(writes[0], step)) is not None:
        return Answer(place, "gradients are averaged here after the step that has used them", proof)
    same = [n for n in mine if n.serial < step.serial]
    if not same:
        return None
    lost = [e for e in means.lost if since < e.serial < step.serial and not _used(run, e.result)]
    text = "the mean of the gradients is written into a copy here: each rank steps with its own"
    if lost and lost[0].place is not None:
        return Answer(lost[0].place, text, proof)
    others = [w for w, _, v in means.written if since < w.serial < step.serial and _of(v, mixed)]
    if others and (place := _where(others[-1], same[0])) is not None and not any(w.maybe for w in others):
        return Answer(place, "the mean of the gradients is not given to all ranks: one steps with its own", proof)
    if not others and same[-1].place is not None and not any(_used(run, n) for n in same[-1:]):
        return Answer(same[-1].place, "nothing uses this mean of the gradients: each rank steps with its own", proof)
    return None


def _in_turn(means: Means, first: Event, param: Node, until: float, proof: tuple[Place, ...]) -> Answer | None:
    """A mean for the next rank that is made of gradients in which the mean for this one stands already.

    Only what comes before ``until`` counts: the next backward, from where on the gradients are those of other data."""
    mixed = {id(n) for n in means.joined}
    for write, other, value in means.written:
        if other is param or not first.serial <= write.serial < until or not _of(value, mixed):
            continue
        for grad in (n for n in ancestors(value) if n.op == "grad" and n.inputs and n.inputs[0] is param):
            same_name = other.name == param.name and other.shape.dims == param.shape.dims
            if same_name and first.serial < grad.serial < write.serial and grad.turns[:1] == first.turns[:1]:
                text = "the mean for this rank is made after another one got its own: no two are the same"
                return Answer(write.place, text, proof) if write.place is not None else None
    return None


def _where(event: Event, beside: Event | Node) -> Place | None:
    """Where the program asks for the event, in the function that asks for the other one too."""
    ways = [*event.stack, event.place]
    other = [*beside.stack, beside.place]
    shared = 0
    while shared < min(len(ways), len(other)) - 1 and ways[shared] == other[shared]:
        shared += 1
    return ways[shared]


def _of(value: Value, mixed: set[int]) -> bool:
    return any(id(p) in mixed for p in parts(value))


def _used(run: Rehearsing, value: Value) -> bool:
    """True if anything is computed from it, or it is handed on."""
    wanted = {id(p) for p in parts(value)}
    if any(id(p) in wanted for n in run.nodes for v in (*n.inputs, *n.options.values()) for p in parts(v)):
        return True
    return any(id(p) in wanted for e in run.tape for v in (*e.args, *e.options.values()) for p in parts(v))
