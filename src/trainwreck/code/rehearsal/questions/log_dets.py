"""Log-determinants of normalising flows: are they part of the objective, and summed up for each sample?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along, batch_first
from trainwreck.code.rehearsal.questions.flows import is_density, logarithms, stretches
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, users
from trainwreck.code.rehearsal.questions.signs import Term, terms

ADDS = frozenset(["sum", "mean", "neg", "add", "sub", "mul"]) | STRUCTURE


def left_out(run: Rehearsing) -> Iterator[Answer]:
    """The objective is a density of what was stretched; the logarithms of the stretch are worked out and left out, all
    of them or those of some layers: a sum that begins anew in each turn."""
    for found, base, keys in _flows(run):
        summed = keys & {id(t.node) for t in found}
        known = bool((keys - summed) & _logarithms(run, base.node, keys))
        dropped = _dropped(run, keys - summed) if known else None
        if summed and any(n is dropped for e in backwards(run) for n in graph(e.subject)):
            continue
        if dropped is not None and dropped.place is not None and base.node.place is not None:
            # where some layers count, the loop over them begins the sum anew
            scope = dropped.turns[-1].scope if summed and dropped.turns else base.node.place[1]
            ways = [at for at in (*dropped.stack, dropped.place) if at[1] is scope]
            text = (
                "the logarithm of the stretch is worked out and is no part of the objective: density is not conserved"
            )
            yield Answer(ways[-1] if ways else dropped.place, text, (base.node.place,))
            return


def reduced_otherwise(run: Rehearsing) -> Iterator[Answer]:
    """The density is summed over the features of each sample, and the logarithm of the stretch is averaged over them,
    or summed over the samples."""
    for found, base, keys in _flows(run):
        density = _reduction(run, base.node)
        if density is None or density.op != "sum" or along(density) not in (1, -1):
            continue
        for term in found:
            size = _reduction(run, term.node) if id(term.node) in keys else None
            if size is not None and size.place is not None and _onto_each(run, size):
                text = (
                    "the logarithm of the stretch is summed over all samples, and added to the density of each of them"
                )
                yield Answer(size.place, text, (density.place,) if density.place is not None else ())
                return
            size = size if not term.factors else None
            shape = term.node.shape
            if size is None or size.place is None or shape.open or len(shape.dims) != 2 or shape.dims[1] == 1:
                continue
            axis = along(size)
            taken = users(run).get(id(term.node), ())
            if taken and all(u.op == "getitem" and (u.shape.open or u.shape.dims[1:] == (1,)) for u in taken):
                continue  # single columns are taken out of the output of a layer: this goes over the samples
            if size.op == "mean" and axis in (None, 1, -1):
                text = "the logarithm of the stretch is averaged over the features, and the density is summed over them"
            elif size.op == "sum" and axis == 0:
                text = "the logarithm of the stretch is summed over the samples, and the density over the features"
            else:
                continue
            yield Answer(size.place, text, (density.place,) if density.place is not None else ())
            return


def _onto_each(run: Rehearsing, total: Node) -> bool:
    """True for a sum over samples and features, one number, that is added to a row of numbers, one for each sample."""
    inner = total.inputs[0] if total.op == "sum" and along(total) is None else None
    if not isinstance(inner, Node) or inner.shape.open or len(inner.shape.dims) != 2 or not batch_first(inner):
        return False  # a table of parameters stretches each sample alike
    queue = [total]
    for _ in range(24):
        if not queue:
            return False
        for user in users(run).get(id(queue.pop(0)), ()):
            if user.op not in ("add", "sub", "neg") or user.shape.open:
                continue
            if user.op != "neg" and user.shape.dims in ((None,), inner.shape.dims[:1]):
                return True
            if not user.shape.dims:
                queue.append(user)
    return False


def _flows(run: Rehearsing) -> Iterator[tuple[list[Term], Term, set[int]]]:
    """(the summands of an objective, a density among them, the logarithms of what its argument was stretched by)."""
    for event in backwards(run):
        found = [t for t in terms(event.subject) if t.node.grad]
        for base in found:
            if base.factors or not is_density(base.node) or not base.sign or _learned(base.node):
                continue
            exponents = set(stretches(base.node))
            if exponents:
                yield found, base, exponents
                break


def _logarithms(run: Rehearsing, density: Node, keys: set[int]) -> set[int]:
    """What is a logarithm already, and factors of which one is taken: the sum of a factor itself is none."""
    taken = {k for k in keys if any(u.op in ("log", "log1p", "abs") for u in users(run).get(k, ()))}
    return logarithms(density) | taken


def _learned(density: Node) -> bool:
    """True for a distribution that a network makes (a policy), which accounts for its own scale, and for the squared
    distance of a network's output from a target."""
    if density.op == "log_prob":
        return any(isinstance(i, Node) and i.grad for i in density.inputs[1:])
    inner = density.inputs[0] if density.inputs else None
    if not isinstance(inner, Node) or inner.op != "sub" or len(inner.inputs) < 2:
        return False
    output, target = inner.inputs[:2]
    return isinstance(output, Node) and output.grad and isinstance(target, Node) and not target.grad


def _dropped(run: Rehearsing, keys: set[int]) -> Node | None:
    """The last sum of such logarithms that nothing is computed from."""
    table = users(run)
    queue = [n for n in run.nodes if id(n) in keys]
    seen = set(keys)
    ends: list[Node] = []
    for _ in range(600):
        if not queue:
            break
        node = queue.pop()
        used = table.get(id(node), ())
        after = [u for u in used if u.grad]
        derived = any(u.op == "grad" for u in used)  # summed up to take a derivative of it
        if node.op in ("sum", "mean", "neg", "add", "sub") and not after and not derived and id(node) not in keys:
            ends.append(node)
        for user in after:
            if (
                user.op in ADDS
                and id(user) not in seen
                and all(not isinstance(i, Node) or i.op != "exp" for i in user.inputs)
            ):
                seen.add(id(user))
                queue.append(user)
    summed = [n for n in ends if _summed(n)]
    return max(summed, key=lambda n: n.serial) if summed else None


def _summed(node: Node) -> bool:
    """True where a sum over features lies on the way."""
    at: Node | None = node
    for _ in range(12):
        if at is None:
            return False
        if at.op in ("sum", "mean"):
            return True
        at = next((i for i in at.inputs if isinstance(i, Node) and i.grad), None)
    return False


def _reduction(run: Rehearsing, node: Node) -> Node | None:
    """The first sum or mean that a value goes into."""
    at = node
    for _ in range(8):
        after = [u for u in users(run).get(id(at), ()) if u.grad and u.op in (*ADDS, "div")]
        sums = [u for u in after if u.op in ("sum", "mean")]
        if sums:
            return sums[0]
        if not after:
            return None
        at = after[0]
    return None
