"""Codebooks: which gradient gets past the nearest code, and which terms train the codes and hold the encoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, unknown
from trainwreck.code.rehearsal.questions.terms import Term, losses_of, parameters_behind, squared_error, weighed_at
from trainwreck.core.row import Row

NEAREST = frozenset(["argmin", "argmax", "min", "max", "topk", "one_hot"])
LOOKUPS = frozenset(["getitem", "embedding", "index_select", "matmul", "mm", "einsum", "gather", "take"])
DISTANCES = frozenset(["cdist", "sub", "add", "mul", "pow", "square", "norm", "t", "T", "transpose", "sum"])
"""What a further codebook is compared with or corrected by: no layer that comes after the lookup."""
DOMINATES = 10.0
"""Weight of the commitment beside the reconstruction. The papers use 0.25 to 2 (arXiv:1711.00937)."""


class Lookup(Row):
    """``node`` holds the nearest codes of ``codes`` for values that the parameters ``encoder`` computed."""

    node: Node
    codes: Node
    encoder: frozenset[int]


def lookups(run: Rehearsing) -> list[Lookup]:
    """The lookups of nearest codes behind the losses."""
    if "lookups" not in run.memo:
        found: dict[int, Lookup] = {}
        for event, _ in losses_of(run):
            for node in ancestors(event.subject):
                if node.op in LOOKUPS and (made := _lookup(node)) is not None:
                    found[id(node)] = made
        run.memo["lookups"] = list(found.values())
    kept: list[Lookup] = run.memo["lookups"]
    return kept


def _lookup(node: Node) -> Lookup | None:
    codes = next((c for i in node.inputs for c in [_codes(i)] if c is not None), None)
    if codes is None:
        return None
    for item in node.inputs:
        for index in parts(item):
            if index.op == "param" or _codes(index) is codes:
                continue
            picked = next((n for n in ancestors(index, through=_of_index) if n.op in NEAREST - {"one_hot"}), None)
            if picked is None:
                continue
            encoder = frozenset(parameters_behind(picked).keys() - {id(codes)})
            if encoder and any(n is codes for n in ancestors(picked)):
                return Lookup(node, codes, encoder)
    return None


def _of_index(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("part", "one_hot", "scatter", "scatter_", "setitem", "eye", "zeros",
                                               "getitem", "element")  # fmt: skip


def _codes(value: Value) -> Node | None:
    """The codebook: a parameter or buffer, perhaps transposed."""
    for _ in range(40):  # a buffer is moved in place in every turn
        if not isinstance(value, Node):
            return None
        if value.op in ("param", "buffer"):
            return value
        same = value.op in STRUCTURE | {"t", "T", "normalize"} or value.options.get("inplace") is True
        value = value.inputs[0] if same and value.inputs else None
    return None


def _hung(value: Value) -> set[int]:
    """The parameters that a gradient of ``value`` reaches, without those that cancel."""
    found: set[int] = set()
    queue: list[Value] = [value]
    seen: set[int] = set()
    while queue:
        for node in parts(queue.pop()):
            if id(node) in seen or (not node.grad and node.op != "param"):
                continue
            seen.add(id(node))
            if node.op == "param":
                found.add(id(node))
            elif (rest := _cancelled(node)) is not None:
                queue.append(rest)
            else:
                queue += [i for i in node.inputs]
                queue += [o for o in node.options.values() if isinstance(o, Node | tuple)]
    return found


def _cancelled(node: Node) -> Node | None:
    """``z + (q - z)`` or ``z + q - z`` without a stop: only ``q`` remains."""
    if node.op == "sub" and len(node.inputs) >= 2 and isinstance(node.inputs[0], Node) and node.inputs[0].op == "add":
        rest = [i for i in node.inputs[0].inputs[:2] if i is not node.inputs[1]]
        return rest[0] if len(rest) == 1 and isinstance(rest[0], Node) else None
    if node.op == "add" and len(node.inputs) >= 2:
        for one, other in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
            if isinstance(other, Node) and other.op == "sub" and len(other.inputs) >= 2 and other.inputs[1] is one:
                return other.inputs[0] if isinstance(other.inputs[0], Node) else None
    return None


def blocked(run: Rehearsing) -> Iterator[Answer]:
    """What the decoder gets hangs on the codes only: the encoder gets no gradient of the reconstruction."""
    told: set[int] = set()
    for look in lookups(run):
        encoder = {k for k in look.encoder if _trainable(run, k)}
        if not encoder:
            continue
        for event, found in losses_of(run):
            for term in found:
                given = _beyond(term, look)
                if given is None or any(unknown(n) for n in ancestors(term.node) if n.grad):
                    continue
                if _hung(term.node) & encoder or any(_hung(t.node) & encoder for t in found if _beyond(t, look)):
                    continue
                other = next((p for p, v in run.memo.get("aliases", ()) if v is given), None)
                place = other or given.place or look.node.place
                if place is not None and id(place[0]) not in told:
                    told.add(id(place[0]))
                    text = "no gradient passes the nearest code: the encoder learns nothing from the reconstruction"
                    yield Answer(place, text, tuple(p for p in (look.node.place, event.place) if p is not None))
                    return


def _trainable(run: Rehearsing, key: int) -> bool:
    return any(id(p) == key and p.trainable is not False for e in steps(run)[-4:] for p in held(e))


def _beyond(term: Term, look: Lookup) -> Node | None:
    """What the network after the lookup is given, if this term looks at its output; None for terms on the codes."""
    at_layers = [n for n in ancestors(term.node) if n.op not in LOOKUPS | DISTANCES and any(
        isinstance(i, Node) and i.op == "param" and i is not look.codes and id(i) not in look.encoder for i in n.inputs
    )]  # fmt: skip
    for layer in reversed(at_layers):
        for item in layer.inputs:
            for value in parts(item):
                if value.op == "param" or not any(n is look.node for n in ancestors(value)):
                    continue
                if not any(n in at_layers for n in near(value, 400)):
                    return value
    return None


# ---------------------------------------------------------------------- the terms
@dataclass
class Held:
    """What the losses of a quantiser hold: each with its weight."""

    commitment: list[Term]
    codes: list[Term]
    stopped: list[Term]
    """Terms between codes and encoder that hang on neither as they should."""


def _terms(look: Lookup, found: list[Term]) -> Held:
    made = Held([], [], [])
    for term in found:
        pair = squared_error(term.node)
        if pair is None:
            continue
        codes = [s for s in pair if any(n is look.node for n in ancestors(s, through=_same_value))]
        values = [s for s in pair if s not in codes and parameters_behind(s).keys() <= look.encoder]
        if len(codes) != 1 or len(values) != 1:
            continue
        to_codes = id(look.codes) in _hung(codes[0])
        to_encoder = bool(_hung(values[0]) & look.encoder)
        if to_encoder:
            made.commitment.append(term)
        if to_codes:
            made.codes.append(term)
        if not to_codes and not to_encoder:
            made.stopped.append(term)
    return made


def _same_value(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("add", "sub", "normalize")


def uncommitted(run: Rehearsing) -> Iterator[Answer]:
    """No term holds the encoder to its codes, or none moves the codes."""
    for look in lookups(run):
        moved = any(e.name not in ("requires_grad",) and _in_loop(run, e) for e in look.codes.writes)
        for event, found in losses_of(run):
            if not any(n is look.node for n in ancestors(event.subject, through=_of_now)) or not _through(look, found):
                continue
            kept = _terms(look, found)
            learnable = look.codes.op == "param" and _trainable(run, id(look.codes))
            reached = id(look.codes) in _hung(event.subject)
            lost = "" if kept.commitment else "nothing holds the encoder to its codes"
            if learnable and not reached and not moved:
                lost = "nothing moves the codes"
            if not lost or kept.stopped or (len(kept.commitment) > 1 and not kept.codes) or event.place is None:
                continue
            if not learnable and not moved and look.codes.op == "buffer":
                continue
            forgotten, last = _forgotten(run, look, found), _last(event)
            beside = forgotten is not None and (last is None or forgotten[1] is last[1])
            place = forgotten if beside else last
            if place is not None:
                proof = tuple(p for p in (forgotten, event.place) if p is not None and p is not place)
                yield Answer(place, f"{lost}: the term is not in the loss", proof)
                return


def _of_now(node: Node) -> bool:
    """False for what was written into a tensor: codes that are moved hang on all lookups of the steps before."""
    return node.options.get("inplace") is not True


def _through(look: Lookup, found: list[Term]) -> bool:
    """True where the reconstruction trains the encoder past the lookup."""
    return any(_beyond(t, look) is not None and _hung(t.node) & look.encoder for t in found)


def _in_loop(run: Rehearsing, event: Event) -> bool:
    return bool(event.turns)


def _forgotten(run: Rehearsing, look: Lookup, found: list[Term]) -> Place | None:
    """Where an error between codes and encoder is computed that no loss holds: nearest to the loss."""
    used = {id(n) for e, _ in losses_of(run) for n in ancestors(e.subject)}
    for node in run.nodes:
        if id(node) in used or node.place is None or not node.grad:
            continue
        pair = squared_error(node)
        if pair is None:
            continue
        if any(any(n is look.node for n in ancestors(s, through=_same_value)) for s in pair):
            return node.place
    return None


def _last(event: Event) -> Place | None:
    node = event.subject
    while isinstance(node, Node) and node.place is None and node.inputs:
        node = node.inputs[0]
    return node.place if isinstance(node, Node) and node.place is not None else event.place


def dominating(run: Rehearsing) -> Iterator[Answer]:
    """The commitment counts many times as much as the reconstruction."""
    for look in lookups(run):
        for event, found in losses_of(run):
            kept = _terms(look, found)
            rest = [t for t in found if _beyond(t, look) is not None and t.weight > 0]
            if not rest:
                continue
            for term in kept.commitment:
                plain = [r.op for r in term.reductions] == [r.op for r in rest[0].reductions]
                if plain and not term.factors and term.weight / rest[0].weight >= DOMINATES:
                    place = weighed_at(run, term) or term.node.place
                    if place is not None and event.place is not None:
                        text = f"the commitment counts {term.weight / rest[0].weight:g} times as much as the rest"
                        yield Answer(place, text, (event.place,))
                        return


# ---------------------------------------------------------------------- stops on the wrong side
def misplaced(run: Rehearsing) -> Iterator[Answer]:
    """A pair of sides of which the one that has no other loss is cut off, and the other hangs.

    Of several such terms the one with the largest weight is told: that of the commitment is a fraction of it."""
    lost = _never_reached(run)
    if not lost or next(iter(blocked(run)), None) is not None:
        return
    best: tuple[float, Node, Node] | None = None
    for _, found in losses_of(run):
        for term in found:
            sides: tuple[Value, ...] | None = squared_error(term.node)
            if sides is None and term.node.op in _PAIRS and len(term.node.inputs) > 1:
                sides = term.node.inputs[-2:]
            if sides is None:
                continue
            for cut, kept in (sides, sides[::-1]):
                if not isinstance(cut, Node) or not isinstance(kept, Node) or cut.grad or not kept.grad:
                    continue
                stop = next((n for n in ancestors(cut, through=lambda n: not n.grad) if n.op in _STOPS), None)
                found_one = bool(parameters_behind(cut).keys() & lost) and stop is not None and stop.place is not None
                if found_one and stop is not None and (best is None or abs(term.weight) > best[0]):
                    best = (abs(term.weight), stop, term.node)
    if best is not None and best[1].place is not None:
        text = "the gradient is stopped on the side that has no other loss to learn from"
        yield Answer(best[1].place, text, (best[2].place,) if best[2].place is not None else ())


_PAIRS = frozenset(["cosine_similarity", "mul", "matmul", "einsum", "kl_div", "pairwise_distance"])
_STOPS = frozenset(["detach", "detach_", "data"])


def _never_reached(run: Rehearsing) -> set[int]:
    """Parameters of optimizers that no backward reaches."""
    mine = {id(p) for e in steps(run) for p in held(e) if p.trainable is not False}
    reached: set[int] = set()
    for event in run.tape:
        if event.name == "grad":
            return set()
        if event.name == "backward":
            if any(unknown(n) for n in ancestors(event.subject, through=lambda n: n.grad) if n.grad):
                return set()
            reached |= {id(p) for p in event.state.get("reached", [])}
    return mine - reached
