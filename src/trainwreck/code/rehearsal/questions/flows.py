"""Normalising flows: a change of variables counts with the logarithm of its stretch, and with the right sign."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, backwards, bounds, trained, users
from trainwreck.code.rehearsal.questions.signs import Term, terms

LINEAR = frozenset(["add", "sub", "mul", "div", "neg", "setitem", "either", "where"]) | STRUCTURE | JOINS
DENSITIES = frozenset(["log_prob", "pow", "square"])
LONGEST = 4_000
Stretch = dict[int, tuple[int, tuple[Value, ...]]]
"""For a value by its ``id``: its sign in the logarithm of the stretch, and what it is multiplied with there."""


def stretched(run: Rehearsing) -> Iterator[Answer]:
    """``log p(z) + log |dz/dx|`` whose second part has the sign of the inverse, in a loss or in a mixture."""
    for event in backwards(run):
        answer = _wrong(run, event.subject, event.place, whole=True)
        if answer is not None:
            yield answer
            return
    for node in trained(run):
        if node.op in ("logsumexp", "exp") and node.inputs and node.place is not None:
            answer = _wrong(run, node.inputs[0], node.place, whole=False)
            if answer is not None:
                yield answer
                return


def _wrong(run: Rehearsing, value: Value, last: Place | None, *, whole: bool) -> Answer | None:
    """``whole``: what is minimised; else a log-density that is summed up with others."""
    found = [t for t in terms(value) if t.node.grad]
    for base in found:
        if base.factors or not is_density(base.node) or not base.sign:
            continue
        squares = -base.sign if base.node.op == "log_prob" else base.sign
        if last is None or squares != (1 if whole else -1):
            continue
        known = _stretches(base.node)
        keys = [(t, known[key]) for t in found if t is not base for key in _keys(t.node) if key in known]
        meant = [(t, sign) for t, (sign, factors) in keys if _alike(t.factors, factors)]
        if meant and all(t.sign == squares * sign for t, sign in meant):
            place = _place(run, meant[0][0], base) if whole else meant[0][0].place
            place = (_taken_off(run, meant[0][0], meant[0][1], base) if whole else None) or place
            text = "where the data are stretched their density falls: this log-determinant has the wrong sign"
            return Answer(place or last, text, (last,))
    return None


def _taken_off(run: Rehearsing, wrong: Term, stretch: int, base: Term) -> Place | None:
    """The minus outside of the layer, where the layer's own log-determinant has the sign of its stretch."""
    at, minus = wrong.node, list[Node]()
    for _ in range(40):
        after = [u for u in users(run).get(id(at), ()) if u.grad and u.op in (*LINEAR, "sum", "mean")]
        if not after:
            break
        user = after[-1]
        if user.op == "neg" or (user.op == "sub" and len(user.inputs) > 1 and user.inputs[1] is at):
            minus.append(user)
        at = user
    scope = wrong.node.place[1] if wrong.node.place is not None else None
    inner = [n for n in minus if n.place is not None and n.place[1] is scope]
    if (-1) ** len(inner) != stretch:
        return None
    outer = [n.place for n in minus if n not in inner and n.place is not None]
    turned = next((p for p in outer if not _covers(run, p, base.node)), None)
    return turned or (_met(run, wrong.node, base.node) if not outer else None)


def _met(run: Rehearsing, stretch: Node, density: Node) -> Place | None:
    """Where the two are put together."""
    level, behind = [stretch], {id(stretch)}
    while level and len(behind) < LONGEST:
        for node in level:
            if node.op in ("add", "sub") and any(n is density for n in ancestors(node)):
                return node.place
        after = [u for n in level for u in users(run).get(id(n), ()) if u.grad and id(u) not in behind]
        level = list({id(u): u for u in after}.values())
        behind |= {id(u) for u in level}
    return None


def _covers(run: Rehearsing, minus: Place, base: Node) -> bool:
    """True where this minus stands in front of ``base`` too."""
    for node in run.nodes:
        if node.place is not None and node.place[0] is minus[0] and node.op in ("neg", "sub", "mul"):
            turned = node.inputs[1:] if node.op == "sub" else node.inputs
            if any(n is base for i in turned for n in ancestors(i)):
                return True
    return False


def _keys(node: Node) -> list[int]:
    """What a summand may be the logarithm of the stretch of: the value in ``exp``, or in its own logarithm."""
    at, found = node, [id(node)]
    for _ in range(6):
        step = next(iter(parts(at.inputs[:1])), None)
        if at.op not in ("log", "abs", "clamp", "clamp_min", "logabsdet") or step is None:
            break
        at = step
        found.append(id(at))
    return found


def is_density(node: Node) -> bool:
    """A logarithm of a density, or a square as that of the normal distribution has it (``z.pow(2)``, ``z * z``)."""
    squared = node.op == "mul" and len(node.inputs) > 1 and node.inputs[0] is node.inputs[1]
    return node.op in DENSITIES or squared


def _alike(ours: tuple[Value, ...], theirs: tuple[Value, ...]) -> bool:
    """True where what a summand is multiplied with (a mask) can't turn its sign against that in the stretch."""
    known = {id(f) for f in theirs}
    return all(id(f) in known or bounds(f).low >= 0 for f in ours) and (
        {id(f) for f in ours} >= known or all(bounds(f).low >= 0 for f in theirs)
    )


def stretches(density: Node) -> dict[int, int]:
    """For each factor on the way from the data to the argument of a density: is it multiplied (+1) or divided (-1).

    A factor ``exp(s)`` stands under each summand of ``s``, any other under itself."""
    return {key: sign for key, (sign, _) in _stretches(density).items()}


def logarithms(density: Node) -> set[int]:
    """The values in ``exp`` alone, by ``id``: what is a logarithm of a stretch as it stands."""
    return set(_stretches(density, plain=False))


def _stretches(density: Node, *, plain: bool = True) -> Stretch:
    found: Stretch = {}
    queue: list[Value] = list(density.inputs if density.op == "log_prob" else density.inputs[:1])
    seen: set[int] = set()
    while queue and len(seen) < LONGEST:
        for node in parts(queue.pop()):
            if id(node) in seen or node.op not in LINEAR:
                continue
            seen.add(id(node))
            if node.op in ("mul", "div") and len(node.inputs) > 1:
                for number, side in enumerate(node.inputs[:2]):
                    if isinstance(side, Node) and side.grad:
                        _note(side, -1 if number and node.op == "div" else 1, found, plain)
                queue += list(node.inputs[:2])
            else:
                queue += [i for i in node.inputs if isinstance(i, Node | tuple | Items)]
    return found


def _note(factor: Node, sign: int, found: Stretch, plain: bool) -> None:
    at: Node = factor
    for _ in range(4):
        if at.op not in STRUCTURE or not at.inputs or not isinstance(at.inputs[0], Node):
            break
        at = at.inputs[0]
    if plain:
        found.setdefault(id(at), (sign, ()))
    if at.op == "exp" and at.inputs:
        for inner in terms(at.inputs[0]):
            found.setdefault(id(inner.node), (sign * inner.sign, inner.factors))


def _place(run: Rehearsing, wrong: Term, base: Term) -> Place | None:
    """The minus in front of the summand alone; without one the statement that sums it up."""
    if wrong.place is not None and not _covers(run, wrong.place, base.node):
        return wrong.place
    level = [wrong.node]
    for _ in range(4):
        level = [u for one in level for u in users(run).get(id(one), ()) if u.grad]
        summed = next((u for u in level if u.op in ("sum", "mean") and u.place is not None), None)
        if summed is not None:
            return summed.place
    return wrong.node.place
