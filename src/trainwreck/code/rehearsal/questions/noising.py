"""Diffusion models: how much of the data and how much noise the network is given at each time."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.denoising import Denoiser, denoisers, mixture
from trainwreck.code.rehearsal.questions.levels import row
from trainwreck.code.rehearsal.questions.places import about
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core, sum_in
from trainwreck.core.frozen import Frozen

DRAWN = frozenset(["randint", "rand", "rand_like", "uniform", "integers", "random"])
NOTHING = 0.01
"""A variance below this share of the other one is not seen beside it."""
MOSTLY = 0.9
"""Share of the times at which it must be so: good schedules have it at their ends only."""
LITTLE = 0.1
"""Noise that never has more than this share of the variance of the data hides nothing of them."""
CLOSE = 0.05


class Levels(Frozen):
    """``signal[i] * data + noise[i] * noise`` at each time."""

    node: Node
    index: Node
    signal: list[float]
    noise: list[float]
    data: Node

    def behind(self) -> Iterator[Node]:
        """What the factors are computed from. How the data themselves are made says nothing of the noise."""
        return ancestors(self.node, through=lambda n: n.op not in ("param", "batch") and n is not self.data)


def levels(found: Denoiser) -> Levels | None:
    """The factors in front of data and noise, worked out; None where they aren't known."""
    made = mixture(found.given)
    at = sum_in(found.given.args[0]) if found.given.args and made is not None else None
    if at is None or made is None:
        return None
    sides = [i for i in at.inputs[:2] if isinstance(i, Node)]
    if at.op != "add" or len(sides) != 2:
        return None
    data, noise = made
    other = next((s for s in sides if any(n is noise for n in _factors(s)[1])), None)
    if other is None:
        return None
    signal_side = next(s for s in sides if s is not other)
    drawn = {id(n): n for s in sides for f in _factors(s)[0] for n in ancestors(f) if n.op in DRAWN}
    drawn = {k: n for k, n in drawn.items() if not any(m is n for m in ancestors(data))}
    if len(drawn) != 1:
        return None
    index = next(iter(drawn.values()))
    signal = _product(_factors(signal_side, data)[0], index)
    added = _product(_factors(other)[0], index)
    if signal is None or added is None or len(signal) != len(added) or len(signal) < 5:
        return None
    return Levels(at, index, signal, added, data)


def _factors(side: Node, data: Node | None = None) -> tuple[list[Value], list[Node]]:
    """(what stands in front, what it stands before) of a product."""
    if data is not None and side is data:
        return [], [side]
    if side.op != "mul" or len(side.inputs) < 2:
        return [], core(side)
    found: list[Value] = []
    rest: list[Node] = []
    for item in side.inputs[:2]:
        if not isinstance(item, Node):
            found.append(item)
        elif data is not None:
            (rest if item is data else found).append(item)
        else:
            inner = core(item)
            noise = any(n.op in ("randn", "randn_like", "normal", "standard_normal") for n in inner)
            (rest.extend(inner) if noise else found.append(item))
    return found, rest


def _product(factors: list[Value], index: Node) -> list[float] | None:
    whole = row(index, index)
    if not isinstance(whole, list):
        return None
    result = [1.0] * len(whole)
    for factor in factors:
        values = row(factor, index)
        if values is None or (isinstance(values, list) and len(values) != len(result)):
            return None
        result = [
            a * b for a, b in zip(result, values if isinstance(values, list) else [values] * len(result), strict=True)
        ]
    return result


def schedule(run: Rehearsing) -> Iterator[Answer]:
    """Nearly always noise alone or data alone is given to the network, or the two factors do not belong together."""
    for found in denoisers(run):
        known = levels(found)
        if known is None:
            yield from _another_time(run, found)
            continue
        pairs = list(zip([s * s for s in known.signal], [n * n for n in known.noise], strict=True))
        hidden = sum(s < NOTHING * n for s, n in pairs) / len(pairs)
        bare = sum(n < NOTHING * s for s, n in pairs) / len(pairs)
        place = found.given.place
        if known.node.place is not None:
            place = known.node.place
        if place is None:
            continue
        proof = (place,)
        if hidden >= MOSTLY:
            text = f"at {hidden:.0%} of the times nothing of the data is left in what the network is given"
            yield Answer(_table(known, small=True) or place, text, proof)
        elif bare >= MOSTLY or max(n / s if s else 1 for s, n in pairs) < _least(run, found, known):
            text = "the noise stays small beside the data at all times: sampling starts from what was never seen"
            drawn = _half_of_the_times(known)
            place = end_of(run, known) or _table(known, small=False) or _picked_from(known) or place
            yield Answer(drawn or place, text, proof)
        elif not _fits(known):
            _, total = max((abs(s + n - 1), s + n) for s, n in pairs)
            text = f"the factors of data and noise do not belong together: their squares add up to {total:.2g}"
            yield Answer(_both_made_in(known) or place, text)
        elif _exchanged(known):
            text = "the factors of data and noise are exchanged: a running product of what is kept falls with the time"
            yield Answer(place, text)
        elif (drawn := _half_of_the_times(known)) is not None:
            yield Answer(drawn, "later levels than these are never trained, and the table goes on", proof)
        else:
            yield from _another_time(run, found)


def _both_made_in(known: Levels) -> Place | None:
    """The statement of another function that gives both factors as they are: a table and what it leaves of one."""
    here = known.node.place[1] if known.node.place is not None else None
    factors = [f for s in known.node.inputs[:2] if isinstance(s, Node) for f in _factors(s)[0] if isinstance(f, Node)]
    rests = [f for f in factors if f.op == "sub" and f.place is not None and f.place[1] is not here]
    plain = [f for f in factors if f is not known.data and (f.op == "getitem" or f.op in STRUCTURE)]
    return rests[0].place if len(rests) == 1 and len(plain) == 1 else None


def _least(run: Rehearsing, found: Denoiser, known: Levels) -> float:
    """How large the noise must become beside the data: it must outweigh them where samples begin as noise alone."""
    sampled = any(
        e.name == "forward" and e.subject is found.given.subject and not e.grad_mode and e.turns for e in run.tape
    )
    fades = max(known.signal) - min(known.signal) > CLOSE
    return 1.0 if sampled and fades else LITTLE


def end_of(run: Rehearsing, known: Levels) -> Place | None:
    """The number in the program that the table of levels ends with: the largest share of noise of one step, or of all.

    None where it is the one in use, for as many steps as that needs: then there are too few of them."""
    behind = list(known.behind())
    ends: list[float] = []
    for node in behind:
        steps = row(node.inputs[0]) if node.op in ("cumprod", "cumsum") and node.inputs else None
        if isinstance(steps, list):
            ends.append(1 - min(steps) if node.op == "cumprod" else max(steps))
    for value in (*ends, max(known.noise)):
        usual = any(abs(value - u) < SLIGHT for u in USUAL_ENDS)
        place = about(run, value) if value not in (0.0, 1.0, 2.0, 0.5) and not usual else None
        if place is not None:
            return place
    return None


USUAL_ENDS = (0.02, 0.012)
"""The last share of noise in DDPM (Ho et al. 2020) and in Stable Diffusion, of 1000 steps each."""
SLIGHT = 1e-6


def _picked_from(known: Levels) -> Place | None:
    """Where the table is made that the factors of a time are picked from."""
    for node in known.behind():
        index = [n for i in node.inputs[1:] for n in parts(i)]
        if node.op in ("getitem", "gather", "index_select") and any(n is known.index for n in index):
            table = node.inputs[0]
            return table.place if isinstance(table, Node) else None
    return None


def _exchanged(known: Levels) -> bool:
    """True where a running product, which falls with the time, is what stands before the noise."""
    behind = [n for n in known.behind() if n.op == "cumprod"]
    tables = [row(n) for n in behind]
    falls = any(isinstance(t, list) and t[0] > t[-1] for t in tables)
    turned = any(n.op in ("flip", "flipud") for n in known.behind())
    return falls and not turned and known.signal[0] < known.signal[-1]


def _half_of_the_times(known: Levels) -> Place | None:
    """Where times are drawn that leave out the later part of the table that they pick from."""
    for node in known.behind():
        picks = node.op in ("getitem", "gather", "index_select") and node.inputs
        if not picks or not any(n is known.index for i in node.inputs[1:] for n in parts(i)):
            continue
        table, drawn = row(node.inputs[0]), row(known.index, known.index)
        if isinstance(table, list) and isinstance(drawn, list) and len(table) > LATER * (max(drawn) + 1):
            return known.index.place
    return None


LATER = 1.3
"""A table so many times as long as what is trained of it has levels that samples pass through untrained."""


def _fits(known: Levels) -> bool:
    """True for the forms in use: squares that add up to one, factors that do, or data that stay as they are."""
    pairs = list(zip(known.signal, known.noise, strict=True))
    return (
        all(abs(s * s + n * n - 1) < CLOSE for s, n in pairs)
        or (all(abs(abs(s) + abs(n) - 1) < CLOSE for s, n in pairs) and not _root_of_product(known))
        or max(known.signal) == min(known.signal)
        or any(n < 0 for n in known.noise)
    )


def _root_of_product(known: Levels) -> bool:
    """True where a root is drawn of a running product: then squares add up to one, not factors. A squared cosine is
    such a product too (Nichol and Dhariwal 2021)."""
    behind = [n.op for n in known.behind()]
    return (
        "cumprod" in behind
        or {"cos", "pow"} <= set(behind)
        or ("sqrt" in behind and any(op in behind for op in ("cumsum", "cos")))
    )


def _table(known: Levels, *, small: bool) -> Place | None:
    """Where the table of levels is made: its running product, or the numbers that it starts from."""
    behind = list(known.behind())
    products = [n for n in behind if n.op in ("cumprod", "cumsum") and row(n) is not None]
    for node in products:
        factors = row(node.inputs[0])
        if small and isinstance(factors, list) and max(factors) < 0.5 and node.place is not None:
            return node.place
    starts = [n for n in behind if n.op == "linspace" and n.place is not None]
    if products and starts:
        return starts[0].place
    return products[0].place if products else None


def _another_time(run: Rehearsing, found: Denoiser) -> Iterator[Answer]:
    """The network is told another time than that at which the noise was added."""
    made = mixture(found.given)
    at = sum_in(found.given.args[0]) if found.given.args else None
    if at is None or made is None or found.given.place is None:
        return
    inside = {id(n) for n in ancestors(made[0])}
    mixed = {id(n) for n in ancestors(at) if n.op in DRAWN and id(n) not in inside}
    given = [*found.given.args[1:], *found.given.options.values()]
    told = {id(n) for a in given for n in ancestors(a, through=lambda n: n.op != "param") if n.op in DRAWN}
    if mixed and told and not mixed & told and len(given) == 1:
        yield Answer(found.given.place, "the network is told another time than the noise was drawn for")


def turned_back_only(run: Rehearsing) -> Iterator[Answer]:
    """Samples are scaled back with the mean and deviation of the data, and the training data were never scaled."""
    backs = [b for n in run.nodes if (b := _back(n)) is not None]
    if not backs:
        return
    for found in denoisers(run):
        made = mixture(found.given)
        if made is None or made[0].place is None:
            continue
        behind = list(ancestors(made[0]))
        inside = {id(n) for n in behind}
        if any(n.op in OPAQUE for n in behind):
            continue
        outputs = {
            id(p)
            for e in run.tape
            if e.name == "forward" and not e.state.get("grad") and e.serial != found.given.serial
            for p in parts(e.result)
        }
        for node, sample, spread, centre in backs:
            if id(spread) in inside or id(centre) in inside or node.place is None:
                continue
            if any(id(n) in outputs for n in ancestors(sample)):
                text = "samples are scaled back with statistics that these data were never scaled with"
                place = _asked(made[0], found)
                taken = spread.place is not None and any(n is m for n in core(spread.inputs[0]) for m in behind)
                if spread.place is not None and taken and spread.place[1] is place[1]:
                    place = spread.place  # the data are at hand where their statistics are taken
                yield Answer(place, text, (node.place,))
                return


def never_turned_back(run: Rehearsing) -> Iterator[Answer]:
    """Latents are scaled for the denoiser, and the samples go to the decoder without being scaled back."""
    for found in denoisers(run):
        made = mixture(found.given)
        scaled = _standardised(made[0]) if made is not None else None
        if scaled is None:
            continue
        latents, spread = scaled
        makers = {id(n.owner) for n in core(latents) if n.owner is not None}
        forwards = [e for e in run.tape if e.name == "forward" and e.args]
        learned = [e for e in forwards if e.state.get("grad")]
        decoders = {id(e.subject) for e in learned if any(id(n.owner) in makers for n in core(e.args[0]))}
        used = [e for e in forwards if not e.state.get("grad")]
        answers = {id(p) for e in used if _same(e.subject, found.module) for p in parts(e.result)}
        for event in used:
            if id(event.subject) not in decoders:
                continue
            behind = list(ancestors(event.args[0], through=lambda n: n.op not in ("param", "batch")))
            sampled = any(id(n) in answers for n in behind)
            if sampled and not any(n is spread for n in behind) and event.place is not None:
                text = "the denoiser learned scaled latents; here its samples go on without being scaled back"
                yield Answer(event.place, text, (scaled[1].place,) if scaled[1].place is not None else ())
                return


def _same(one: Value, other: Value) -> bool:
    return one is other or getattr(one, "copy_of", None) is other


def _standardised(data: Node) -> tuple[Node, Node] | None:
    """Of ``(z - mean) / std``, picked and reshaped: ``z`` and the deviation."""
    for node in core(data):
        if node.op != "div" or len(node.inputs) < 2 or not isinstance(node.inputs[0], Node):
            continue
        spread, inner = _statistic(node.inputs[1], "std"), node.inputs[0]
        if spread is None:
            continue
        base = inner.inputs[0] if inner.op == "sub" and inner.inputs else inner
        if isinstance(base, Node):
            return base, spread
    return None


def _back(node: Node) -> tuple[Node, Node, Node, Node] | None:
    """``x * std + mean``: (the sum, x, the deviation, the mean)."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)] if node.op == "add" else []
    for scaled, shift in (sides, sides[::-1]) if len(sides) == 2 else ():
        if scaled.op != "mul" or len(scaled.inputs) < 2:
            continue
        centre = _statistic(shift, "mean")
        for item, other in (scaled.inputs[:2], scaled.inputs[1::-1]):
            spread = _statistic(item, "std")
            if spread is not None and centre is not None and isinstance(other, Node):
                return node, other, spread, centre
    return None


def _statistic(value: Value, op: str) -> Node | None:
    for _ in range(8):
        if not isinstance(value, Node):
            return None
        if value.op == op or (op == "std" and value.op == "sqrt"):
            return value
        kept = value.op in STRUCTURE or value.op in ("buffer", "clamp", "clamp_min", "part", "add")
        value = value.inputs[0] if kept and value.inputs else None
    return None


def _asked(node: Node, found: Denoiser) -> Place:
    """Where the training asks for its data."""
    assert node.place is not None
    scope = found.given.place[1] if found.given.place is not None else None
    return next((p for p in (node.place, *node.stack[::-1]) if p[1] is scope), node.place)
