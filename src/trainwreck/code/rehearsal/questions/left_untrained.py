"""One network is trained, and another one of its class, that nothing ever trained, is evaluated or saved."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, ids, lives, steps

USES = frozenset(["forward", "state_dict"])


def never_the_trained_one(run: Rehearsing) -> Iterator[Answer]:
    """After training, an untrained network of the same class is used for the first time, and the trained one no more.

    Not meant: a baseline beside the trained network, which is evaluated after its training as well; copies and
    networks that are given weights; those that had a part in the training (fixed random targets)."""
    stepping = [s for s in steps(run) if s.turns]
    if not stepping or not lives(run).sure:
        return
    learned = ids(p for s in steps(run) for p in held(s))
    whole = [o for o in run.objects if is_module(o) and o.copy_of is None]
    inner = ids(m for o in whole for _, m in run.submodules(o, deep=True) if m is not o)
    tops = [o for o in whole if id(o) not in inner and not o.turns]
    holder = {id(m): id(o) for o in tops for _, m in run.submodules(o, deep=True)} | {id(o): id(o) for o in tops}
    uses: dict[int, list[Event]] = {}
    for event in run.tape:
        if event.name in USES and id(event.subject) in holder:
            uses.setdefault(holder[id(event.subject)], []).append(event)
    for fresh in tops:
        mine, own = uses.get(id(fresh), []), run.parameters(fresh)[0]
        if not mine or not own or fresh.place is None:
            continue
        if any(id(p) in learned or p.inputs or _given(p, fresh) for p in own):
            continue
        for trained in (o for o in tops if o is not fresh and _alike(o, fresh)):
            params = ids(run.parameters(trained)[0])
            last = next((s for s in reversed(stepping) if params & ids(held(s))), None)
            if last is None or mine[0].serial < last.serial or _used_afterwards(uses.get(id(trained), []), last):
                continue
            place = _apart(fresh, trained) if fresh.serial > last.serial else _apart(trained, fresh)
            if place is not None:
                text = "nothing has trained the network that is used from here on: what was trained is another one"
                yield Answer(place, text, tuple(p for p in (last.place, mine[0].place) if p is not None))
                return


def _alike(one: Obj, other: Obj) -> bool:
    """True for two of one class of the program, or two that one line makes."""
    if one.place is None or other.place is None or one.cls is not other.cls:
        return False
    return one.cls is not None or one.place[0] is other.place[0]


def _given(param: Node, fresh: Obj) -> bool:
    """True where something but an initialisation is written into a parameter after its network was made."""
    later = [w for w in param.writes if w.serial > fresh.serial and w.name != "requires_grad"]
    return any(not w.full.startswith("torch.nn.init") for w in later)


def _used_afterwards(uses: list[Event], last: Event) -> bool:
    """True where a network is used after its last step, outside of the loop in which it is trained."""
    loops = {id(t.node) for t in last.turns}
    return any(u.serial > last.serial and not any(id(t.node) in loops for t in u.turns) for u in uses)


def _apart(made: Obj, other: Obj) -> Place | None:
    """Where the ways to the two networks part: the call that makes ``made``."""
    ways = [*made.stack, *([made.place] if made.place is not None else [])]
    beside = [*other.stack, *([other.place] if other.place is not None else [])]
    for n, way in enumerate(ways):
        if n >= len(beside) or way[0] is not beside[n][0]:
            return way
    return None
