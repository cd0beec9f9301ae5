"""Pairs or triples of the data against the same ones with a part drawn anew: ranking by embeddings that are looked up.

Knowledge graphs, recommendation, word vectors: what was put in the place of a part at random is to score worse.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.monotone import judged
from trainwreck.code.rehearsal.questions.pulling import Part, _summed
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, trained, users
from trainwreck.code.rehearsal.questions.sampleaxis import sample_axis
from trainwreck.code.rehearsal.questions.signs import distance

HINGES = frozenset(["relu", "clamp", "clamp_min", "maximum", "softplus"])
DRAWS = frozenset(["randint", "randperm", "multinomial", "randint_like", "integers", "permutation", "choice"])
NORMS = frozenset(["norm", "vector_norm"])
FEW = 6


def _hinges(run: Rehearsing) -> Iterator[tuple[Node, Part, Part, float]]:
    """Hinges over the difference of two scores: the hinge, what is added, what is taken off, and the margin."""
    for node in trained(run):
        inner = node.inputs[0] if node.op in HINGES and node.inputs else None
        if not isinstance(inner, Node) or node.place is None:
            continue
        found: list[Part] = []
        margin = _summed(inner, 1, found)
        if len(found) == 2 and {p.sign for p in found} == {1, -1}:
            up, down = sorted(found, key=lambda p: -p.sign)
            yield node, up, down, margin


def drawn_preferred(run: Rehearsing) -> Iterator[Answer]:
    """What was drawn is brought closer together than what the data hold."""
    for node, up, down, _ in _hinges(run):
        kinds = {distance(up.node), distance(down.node)}
        kind = kinds.pop() if len(kinds) == 1 else 0
        rises, falls = _drawn(up.node), _drawn(down.node)
        if not kind or rises == falls or not (rises < falls or falls < rises):
            continue
        inner = node.inputs[0]
        # a distance of the drawn one is to be taken off, a similarity to be added
        if (falls < rises) is (kind > 0):
            text = "what was drawn at random is preferred to what the data hold: the two are exchanged"
            place = inner.place or node.place
            if place is not None:
                yield Answer(place, text)
                return


def _drawn(score: Node) -> frozenset[int]:
    """The draws behind the numbers for which embeddings are looked up."""
    looked = [n.inputs[0] for n in ancestors(score) if n.op == "embedding" and n.inputs]
    return frozenset(id(d) for ids in looked for d in ancestors(ids) if d.op in DRAWS)


def nothing_asked(run: Rehearsing) -> Iterator[Answer]:
    """A hinge over the difference of two distances without a margin: it is at rest where all are zero."""
    for node, up, down, margin in _hinges(run):
        acts = node.op in ("relu", "clamp", "clamp_min")
        if acts and margin == 0 and distance(up.node) == distance(down.node) == 1 and up.node is not down.node:
            text = "no margin is asked for: where all embeddings are one point, every distance is 0 and so is this loss"
            place = node.inputs[0].place or node.place
            if place is not None:
                yield Answer(place, text)
                return


def written_over(run: Rehearsing) -> Iterator[Answer]:
    """The drawn parts are written into the very rows of the data that they are to be compared with."""
    for event in backwards(run):
        written = [n for n in ancestors(event.subject) if n.op == "setitem" and not n.grad and n.place is not None]
        for node in written:
            base = node.inputs[0]
            drawn = any(d.op in DRAWS for d in ancestors(node.inputs[1]))
            if not isinstance(base, Node) or base.op == "setitem" or not drawn or base.op not in ("getitem", "batch"):
                continue
            later = [u for u in users(run).get(id(base), ()) if u.serial > node.serial and u.op != "setitem"]
            if any(u.op in STRUCTURE or u.op in ("embedding", "part", "unbind") for u in later) and _both(
                event.subject, base, node
            ):
                text = "this writes into the rows of the data themselves: what they are compared with is the same"
                place = _alias(run, node) or node.place
                if place is not None:
                    yield Answer(place, text)
                    return


def _both(loss: Value, base: Node, written: Node) -> bool:
    """True where embeddings are looked up for the rows, and for what was written, and compared."""
    looked = [n.inputs[0] for n in ancestors(loss) if n.op == "embedding" and n.inputs]
    behind = [{id(a) for a in ancestors(ids)} for ids in looked]
    return any(id(written) in b for b in behind) and any(id(base) in b and id(written) not in b for b in behind)


def _alias(run: Rehearsing, node: Node) -> Place | None:
    """``neg = rows``: where the name that is written into was given to the rows."""
    target, scope = node.place if node.place is not None else (None, None)
    base = target.value if isinstance(target, ast.Subscript) else None
    if not isinstance(base, ast.Name) or scope is None:
        return None
    for statement in scope.nodes:
        aliases = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name | ast.Subscript)
        targets = statement.targets if isinstance(statement, ast.Assign) and aliases else []
        if any(isinstance(t, ast.Name) and t.id == base.id for t in targets):
            return statement, scope
    return None


# ---------------------------------------------------------------------- axes
def over_samples(run: Rehearsing) -> Iterator[Answer]:
    """A distance whose squares are summed over the samples of the batch, where each pair is to have its own."""
    for node in trained(run):
        inner = node.inputs[0] if node.op in NORMS and node.inputs else None
        if not isinstance(inner, Node) or inner.op not in ("sub", "add") or node.place is None:
            continue
        if inner.shape.open or len(inner.shape.dims) != 2 or not inner.grad or inner.shape.dims[1] in (None, 1):
            continue
        dim = along(node)
        looked = sum(n.op == "embedding" for n in ancestors(inner))
        if looked < 2 or sample_axis(run, inner) != 0 or dim not in (0, -2, None):
            continue
        if dim is None and not _compared(run, node):
            continue
        text = "this distance is summed over the samples of the batch as well: it is not that of each pair"
        yield Answer(node.place, text)
        return


def _compared(run: Rehearsing, node: Node) -> bool:
    """True where a distance goes into a hinge with another one."""
    return any(up.node is node or down.node is node for _, up, down, _ in _hinges(run))


def columns_of_table(run: Rehearsing) -> Iterator[Answer]:
    """A table of embeddings whose columns are brought to length one, not the rows that are looked up."""
    for owner in run.objects:
        weight = (owner.own or {}).get("weight") if owner.name == "Embedding" else None
        for event in weight.writes if isinstance(weight, Node) else ():
            for node in ancestors(tuple(event.args)):
                scales = node.op in NORMS and bool(node.inputs) and _is_weight(node.inputs[0], weight)
                if scales and along(node) == 0 and node.place is not None:
                    text = "the columns of this table are brought to length one, and rows are looked up in it"
                    yield Answer(node.place, text)
                    return


def _is_weight(value: Value, weight: Value) -> bool:
    for _ in range(FEW):
        if value is weight:
            return True
        if not isinstance(value, Node) or value.op not in ("data", "detach", "attribute") or not value.inputs:
            return False
        value = value.inputs[0]
    return False


# ---------------------------------------------------------------------- ranks
def rank_turned(run: Rehearsing) -> Iterator[Answer]:
    """``1 + (distance > distance[true]).sum()``: the rank is counted from the far end."""
    for node in run.nodes:
        if node.op not in ("gt", "ge", "lt", "le") or node.grad or len(node.inputs) < 2 or node.place is None:
            continue
        all_, one = node.inputs[:2]
        if not isinstance(all_, Node) or not isinstance(one, Node) or not judged(all_):
            continue
        greater = node.op in ("gt", "ge")
        if _picked_from(all_, one):
            greater, all_, one = not greater, one, all_
        elif not _picked_from(one, all_):
            continue
        kind = distance(_bare(all_))
        if kind and (kind > 0) is greater and _counted(run, node):
            what = "a distance, of which less is better" if kind > 0 else "a similarity, of which more is better"
            text = f"the rank counts those that are worse: what is compared is {what}"
            yield Answer(node.place, text)
            return


def _picked_from(one: Node, all_: Node) -> bool:
    """True for an element of the same values."""
    for _ in range(FEW):
        if one.op in ("getitem", "gather", "take_along_dim") and one.inputs and _bare(one.inputs[0]) is _bare(all_):
            return True
        inner = one.inputs[0] if one.op in (*STRUCTURE, "item", "float") and one.inputs else None
        if not isinstance(inner, Node):
            return False
        one = inner
    return False


def _bare(value: Value) -> Node:
    """Scores before some were left out by writing a number over them."""
    for _ in range(4 * FEW):
        if isinstance(value, Node) and value.op == "either":
            known = [c for c in candidates(value) if isinstance(c, Node)]
            value = known[0] if known else value
        inner = value.inputs[0] if isinstance(value, Node) and value.op in ("setitem", "masked_fill", "clone") else None
        if not isinstance(inner, Node):
            break
        value = inner
    return value if isinstance(value, Node) else Node("unknown")


def _counted(run: Rehearsing, node: Node) -> bool:
    """True where those that pass are counted, and one is added for the true one itself."""
    front = [node]
    for _ in range(FEW):
        after = [u for n in front for u in users(run).get(id(n), ())]
        if any(u.op == "add" and 1 in u.inputs for u in after):
            return any(n.op == "sum" for u in after for n in ancestors(u))
        front = [u for u in after if u.op in ("sum", "int", "item", "float", "to", "long")]
    return False


__all__ = [
    "columns_of_table",
    "drawn_preferred",
    "nothing_asked",
    "over_samples",
    "rank_turned",
    "written_over",
]
