"""Rates, decay and epsilon as they reach each group of an optimizer, against what is usual for its kind."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Table, Value
from trainwreck.code.rehearsal.graph import OPAQUE, graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number, times
from trainwreck.code.rehearsal.questions.curves import factor
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.places import literal
from trainwreck.code.rehearsal.questions.schedules import driven, schedules
from trainwreck.code.rehearsal.questions.terms import losses_of

ADAPTIVE = frozenset(["Adam", "AdamW", "NAdam", "RAdam", "Adamax"])
COUPLED = frozenset(["SGD", "Adam", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax"])
"""Those whose ``weight_decay`` is added to the gradient (an L2 penalty)."""
HIGH = {"SGD": 5.0, "RMSprop": 0.2, **dict.fromkeys(ADAPTIVE, 0.2)}
"""Rates that no recipe comes near: usual are 1e-5 to 1e-2 for adaptive optimizers, 1e-3 to 1 for SGD."""
HIGH_RECURRENT = 40.0
"""Word models with clipped gradients are trained with 20 to 30."""
HIGH_WITH_MOMENTUM = 50.0
"""``lr / (1 - momentum)`` of SGD; the largest recipes (batches of 8,000 and more) have 32."""
LOW = 5e-6
"""From initial weights, adaptive optimizers move a weight by less than that in a step: fine-tuning's lower end."""
LOW_WAY = 2e-3
"""The longest way of a weight in the whole run (rate times updates), of adaptive optimizers: initial weights of a
layer of 1,000 inputs are ten times as large."""
LARGE_L2, LARGE_DECAY = 0.1, 1.0
"""Usual are 1e-5 to 1e-2 as a penalty, 0.01 to 0.3 decoupled (AdamW)."""
DECOUPLED = 0.01
"""The default of AdamW; penalties for Adam are 1e-6 to 1e-3."""
HIGH_FOR_PRETRAINED = 0.01
"""Fine-tuning with adaptive optimizers takes 1e-5 to 1e-3."""
LARGE_EPS = 0.01
"""Usual are 1e-10 to 1e-3; gradients of a network are mostly below 0.01."""
OWN_RATE = frozenset(["OneCycleLR", "CyclicLR", "MultiplicativeLR", "LambdaLR"])
KEPT = frozenset(["load_state_dict", "copy_"])


def groups(run: Rehearsing, name: str, place: int | None) -> Iterator[tuple[Obj, Table, Value, Event]]:
    """Each group of each optimizer that steps in a loop, with the value of an option there and the last step.

    Not meant: a loop that makes one optimizer for each of several values, to see which does best."""
    for optimizer in run.objects:
        mine = [s for s in steps(run) if s.subject is optimizer and s.turns]
        if not mine or _tried(run, optimizer, name, place):
            continue
        for group in run.groups(optimizer).items:
            if isinstance(group, Table):
                default = optimizer.get(name, place)
                yield optimizer, group, group.entries.get(name, default), mine[-1]


def _tried(run: Rehearsing, optimizer: Obj, name: str, place: int | None) -> bool:
    """True where turns of a loop make such an optimizer at this line, with another number in each."""
    made = [o for o in run.objects if o.turns and o.place == optimizer.place and o.kind == optimizer.kind]
    return optimizer.place is not None and len({number(run, o.get(name, place)) for o in made} - {None}) > 1


def high(run: Rehearsing) -> Iterator[Answer]:
    if _layers(run) < 2:
        return
    for optimizer, _, value, _ in groups(run, "lr", 1):
        rate = number(run, value)
        if rate is None or optimizer.name not in HIGH or optimizer.place is None:
            continue
        scale = _scale(run, optimizer)
        momentum = number(run, optimizer.get("momentum", 2, 0)) or 0.0
        if scale is None:
            continue
        limit = HIGH[optimizer.name]
        if optimizer.name == "SGD" and any(o.name in ("LSTM", "GRU", "RNN") for o in run.objects):
            limit = HIGH_RECURRENT
        heavy = optimizer.name == "SGD" and 0 < momentum < 1 and rate * scale / (1 - momentum) >= HIGH_WITH_MOMENTUM
        if rate * scale >= limit or heavy:
            if heavy and rate * scale < limit and momentum > 0.95:
                where = literal(run, momentum, ("momentum",), optimizer.place)
                text = f"a momentum of {momentum:g} makes the rate of {rate:g} {1 / (1 - momentum):.0f} times as large"
            else:
                where = literal(run, rate, ("lr", "learning_rate", "rate"), optimizer.place)
                text = f"a learning rate of {rate * scale:g} for {optimizer.name}"
            yield Answer(where, text, (optimizer.place,))


def low(run: Rehearsing) -> Iterator[Answer]:
    """A rate far too small for weights that start from their initial values."""
    earlier: set[int] = set()
    for optimizer, group, value, last in groups(run, "lr", 1):
        params = getattr(group.entries.get("params"), "items", [])
        fresh = [p for p in params if isinstance(p, Node) and id(p) not in earlier and not _kept(p, last)]
        earlier |= {id(p) for p in params}
        rate, scale = number(run, value), _scale(run, optimizer, lowest=True)
        if not fresh or len(fresh) < len(params) or not rate or rate < 0 or scale is None or optimizer.place is None:
            continue
        kind = optimizer.name
        if kind not in ADAPTIVE and kind not in ("SGD", "RMSprop"):
            continue
        if kind == "SGD" and _of_sums(run):
            continue
        done = times(run, [s for s in steps(run) if s.subject is optimizer])
        short = kind in ADAPTIVE and done is not None and done >= 20 and rate * scale * done < LOW_WAY
        if rate * scale <= LOW or short:
            where = literal(run, rate, ("lr", "learning_rate", "rate"), optimizer.place)
            way = f": {done:.0f} updates move a weight by {rate * scale * done:.0e} at most" if short and done else ""
            yield Answer(
                where, f"a learning rate of {rate * scale:g} for training from initial weights{way}", (optimizer.place,)
            )


def _of_sums(run: Rehearsing) -> bool:
    """True where a loss is (or may be) a sum: its gradient is larger by the number of the elements."""
    values = [n for e in run.tape if e.name == "backward" for n in list(graph(e.subject))[:20]]
    return any(n.op == "sum" or n.options.get("reduction") == "sum" or (n.grad and n.op in OPAQUE) for n in values)


def decay(run: Rehearsing) -> Iterator[Answer]:
    for optimizer, _, value, _ in groups(run, "weight_decay", {"SGD": 4, "Adam": 4, "AdamW": 4}.get("")):
        known = number(run, value)
        if known is None or optimizer.place is None:
            continue
        limit = LARGE_L2 if optimizer.name in COUPLED else LARGE_DECAY if optimizer.name == "AdamW" else None
        if optimizer.get("decoupled_weight_decay") is True:
            limit = LARGE_DECAY
        if limit is not None and known >= limit:
            where = literal(run, known, ("weight_decay", "wd", "decay", "l2"), optimizer.place)
            usual = "1e-5 to 1e-2" if limit == LARGE_L2 else "0.01 to 0.3"
            text = f"a weight decay of {known:g} for {optimizer.name} shrinks the weights faster than they learn"
            text += f" (usual: {usual})"
            yield Answer(where, text, (optimizer.place,))


def coupled(run: Rehearsing) -> Iterator[Answer]:
    """A decay that is one for AdamW reaches a group of Adam, which adds it to the gradient."""
    for optimizer, _, value, _ in groups(run, "weight_decay", 4):
        known = number(run, value)
        if optimizer.kind != "torch.optim.Adam" or optimizer.place is None or known is None:
            continue
        if known >= DECOUPLED and optimizer.get("decoupled_weight_decay") is None:
            text = f"weight_decay={known:g} in Adam is an L2 penalty inside the adaptive step, not decay"
            yield Answer(optimizer.place, text)


def penalty(run: Rehearsing) -> Iterator[Answer]:
    """The squares of all weights are added to the loss with a factor that shrinks them faster than they learn."""
    for event, found in losses_of(run):
        squares = [t for t in found if _squared_weight(t.node) and t.sure and not t.factors]
        whole = [t for t in squares if all(r.op == "sum" for r in t.reductions)]
        if len(whole) < 2 or len(whole) != len(squares) or len(found) == len(whole) or event.place is None:
            continue
        factor = min(t.weight for t in whole)
        if factor >= LARGE_L2:
            where = literal(run, factor, ("lambda", "weight_decay", "wd", "decay", "l2", "reg", "penalty"), event.place)
            text = f"the squares of all weights are added to the loss {factor:g} times: they shrink faster than they"
            yield Answer(where, f"{text} learn (usual: 1e-5 to 1e-2)", (event.place,))
            return


def _squared_weight(node: Node) -> bool:
    squared = node.op == "square" or (node.op == "pow" and node.inputs[1:2] == (2,))
    return squared and isinstance(node.inputs[0], Node) and node.inputs[0].op == "param"


def high_for_pretrained(run: Rehearsing) -> Iterator[Answer]:
    """An adaptive optimizer moves a whole network that was trained before, with a rate that wipes it out."""
    for optimizer, group, value, _ in groups(run, "lr", 1):
        rate, scale = number(run, value), _scale(run, optimizer)
        params = getattr(group.entries.get("params"), "items", [])
        if rate is None or scale is None or optimizer.name not in ADAPTIVE or optimizer.place is None:
            continue
        if rate * scale >= HIGH_FOR_PRETRAINED and any(_pretrained(p) for p in params):
            where = literal(run, rate, ("lr", "learning_rate", "rate"), optimizer.place)
            text = f"a learning rate of {rate * scale:g} for {optimizer.name} on weights that were trained before"
            yield Answer(where, text, (optimizer.place,))


def _pretrained(value: Value) -> bool:
    """True for all parameters of a network of a library that was made with its trained weights."""
    made = value.inputs[0] if isinstance(value, Node) and value.op == "parameters" and value.inputs else None
    if not isinstance(made, Node) or made.op in OPAQUE:
        return False
    if made.full.startswith("torchvision.models."):
        return made.options.get("weights") is not None or made.options.get("pretrained") is True
    return made.op == "from_pretrained" or (made.full == "timm.create_model" and made.options.get("pretrained") is True)


def epsilon(run: Rehearsing) -> Iterator[Answer]:
    for optimizer, _, value, _ in groups(run, "eps", 3):
        known = number(run, value)
        if optimizer.name not in ADAPTIVE or known is None or optimizer.place is None:
            continue
        if known >= LARGE_EPS or known == 0:
            where = literal(run, known, ("eps", "epsilon"), optimizer.place)
            what = (
                "far above the size of gradients: Adam no longer adapts"
                if known
                else "divides by zero where no gradient came"
            )
            yield Answer(where, f"eps={known:g} is {what}" if known else f"eps=0 {what}", (optimizer.place,))


SWAPPED = 1.5
"""How much further back the first average looks than the second before the two are taken for swapped: equal ones
are used (Orvieto et al. 2025), and in all published recipes the second is the longer one."""


def beta2(run: Rehearsing) -> Iterator[Answer]:
    for optimizer, _, value, last in groups(run, "betas", 2):
        parts = list(value) if isinstance(value, tuple) else getattr(value, "items", [])
        if optimizer.name not in ADAPTIVE or len(parts) != 2 or optimizer.place is None:
            continue
        first, second = (number(run, p) for p in parts)
        if first is not None and second is not None and first < 1 and 1 - second > SWAPPED * (1 - first):
            where = literal(run, first, ("beta1", "b1", "betas", "beta"), optimizer.place)
            text = (
                f"betas of {first:g} and {second:g} are the wrong way round: the mean of gradients looks back further"
            )
            yield Answer(where, f"{text} than that of their squares", (optimizer.place,))
        if second is not None and second >= 0.9999:
            where = literal(run, second, ("beta2", "b2", "betas", "beta"), optimizer.place)
            text = (
                f"a second beta of {second:g} averages over {1 / (1 - second):.0f} updates"
                if second < 1
                else "a second beta of 1 never moves"
            )
            yield Answer(where, text, (optimizer.place, *((last.place,) if last.place else ())))


def _scale(run: Rehearsing, optimizer: Obj, *, lowest: bool = False) -> float | None:
    """The largest factor on the rate that a function of the program gives; None where the rate is not its own."""
    for scheduler in schedules(run):
        if (optimizer in driven(scheduler) and scheduler.name in OWN_RATE) or "schedule" in scheduler.name:
            if scheduler.name == "OneCycleLR":
                top, own = scheduler.get("max_lr", 1), optimizer.get("lr", 1)
                plain = all(isinstance(v, int | float) and v > 0 for v in (top, own))
                return top / own if plain else None
            if scheduler.name != "LambdaLR":
                return None
            known = [factor(run, scheduler, k) for k in (0, 1, 2, 5, 10, 50, 100, 200, 500, 1000)]
            if None in known:
                return None
            return max(k for k in known if k is not None) if not lowest or any(known) else None
    return 1.0


def _kept(param: Node, last: Event) -> bool:
    """True if the weights were loaded before, or are (or may be) those of something that isn't new here."""
    return (
        param.op != "param"
        or any(w.name in KEPT and w.serial < last.serial for w in param.writes)
        or (param.owner is not None and "pretrained" in str(param.owner.options))
    )


def _layers(run: Rehearsing) -> int:
    return sum(1 for o in run.objects if o.own)
