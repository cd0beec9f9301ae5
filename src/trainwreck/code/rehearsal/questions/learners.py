"""Who trains what: the optimizers that step, the parameters that each holds, and which of them stand behind a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Table, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions.gradients import held, steps


@dataclass
class Learners:
    """Optimizers with different parameters, as bits; for each value (by ``id``) the bits of those behind it."""

    optimizers: list[Obj] = field(default_factory=list)
    params: list[set[int]] = field(default_factory=list)
    behind: dict[int, int] = field(default_factory=dict)
    """Whose parameters a value was computed with."""
    hangs: dict[int, int] = field(default_factory=dict)
    """Whose parameters a gradient of the value reaches."""

    def bit(self, optimizer: Value) -> int:
        return next((1 << n for n, o in enumerate(self.optimizers) if o is optimizer), 0)


def learners(run: Rehearsing) -> Learners:
    if "learners" not in run.memo:
        run.memo["learners"] = _learners(run)
    found: Learners = run.memo["learners"]
    return found


def _learners(run: Rehearsing) -> Learners:
    made = Learners()
    for event in steps(run):
        mine = {id(p) for p in held(event)}
        if mine and not any(mine & other for other in made.params) and len(made.params) < 12:
            made.optimizers.append(event.subject)
            made.params.append(mine)
    owner = {key: 1 << n for n, params in enumerate(made.params) for key in params}
    for node in run.nodes:
        if node.op == "param":
            bits = owner.get(id(node), 0)
            made.behind[id(node)] = bits
            made.hangs[id(node)] = bits if node.trainable is not False else 0
            continue
        behind = hangs = 0
        options = (v for v in node.options.values() if isinstance(v, Node | tuple | Items | Table))
        for item in (*node.inputs, *options):
            for inner in parts(item):
                behind |= made.behind.get(id(inner), owner.get(id(inner), 0))
                hangs |= made.hangs.get(id(inner), 0)
        made.behind[id(node)] = behind
        made.hangs[id(node)] = hangs if node.grad else 0
    return made


def entry(run: Rehearsing, value: Node) -> Event | None:
    """The outermost call of a module that ``value`` was given to."""
    for event in run.tape:
        if event.name == "forward" and any(v is value for a in event.args for v in parts(a)):
            return event
    return None


def shown(run: Rehearsing, value: Node) -> Place | None:
    """Where a reader sees ``value`` go into a network."""
    found = entry(run, value)
    return found.place if found is not None and found.place is not None else value.place
