"""Which keys each query of an attention sees: its masks worked out for a few small sequences.

The masks are worked out (``trial``) with small arrays in the place of the data: a sentence without padding, two
documents in a row, a sentence that ends with padding. So it doesn't matter how a mask is spelt, only what it hides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.attending import VIEWS
from trainwreck.code.rehearsal.questions.masks import repaired
from trainwreck.code.rehearsal.questions.roles import PRODUCTS, STRUCTURE, trained
from trainwreck.code.rehearsal.questions.tokens import shifts
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown
from trainwreck.core.row import Row

LOW = -1e3
"""A number below it takes an element out of a softmax: exp(-1000) is 0 in float32."""
ROWS, LENGTH = 2, 6
MOST = 300
"""Longer sequences are not worked out."""
ORDERED = frozenset("tril triu lt le gt ge generate_square_subsequent_mask".split())
FLIPS = frozenset(["invert", "not", "logical_not", "bitwise_not"])
STACKS = {
    "transformerencoder": ("mask", 1, "src_key_padding_mask", 2),
    "transformerencoderlayer": ("src_mask", 1, "src_key_padding_mask", 2),
    "transformerdecoder": ("tgt_mask", 2, "tgt_key_padding_mask", 4),
    "transformerdecoderlayer": ("tgt_mask", 2, "tgt_key_padding_mask", 4),
    "transformer": ("tgt_mask", 3, "tgt_key_padding_mask", 6),
    "multiheadattention": ("attn_mask", 5, "key_padding_mask", 3),
}
"""Of torch's layers: name and place of the mask over positions, and of the one over padding."""


class Masked(Row):
    """An attention with what hides keys from it, from the scores outwards."""

    node: Node
    steps: list[tuple[str, Value, Value]]
    """(``hide`` where true, ``keep`` where true, ``add`` or ``scale``; the mask or the number; what is filled in)."""


def attentions(run: Rehearsing) -> list[Masked]:
    """Every attention that is trained and has a mask, each place once."""
    if "masked-attentions" not in run.memo:
        found: dict[int, Masked] = {}
        for node in trained(run):
            masked = _masked(node)
            if masked is not None and masked.steps and node.place is not None:
                found.setdefault(id(node.place[0]), masked)
        run.memo["masked-attentions"] = list(found.values())
    known: list[Masked] = run.memo["masked-attentions"]
    return known


def _masked(node: Node) -> Masked | None:
    mask: Value
    if node.op == "scaled_dot_product_attention":
        rest = node.inputs[3 : len(node.inputs) - len(node.options)]
        mask = node.options.get("attn_mask", rest[0] if rest else None)
        return Masked(node, [("auto keep", mask, None)]) if isinstance(mask, Node) else None
    if node.op in STACKS:
        word, place, _, _ = STACKS[node.op]
        mask = handed(node, word, place)
        return Masked(node, [("auto hide", mask, None)]) if isinstance(mask, Node) else None
    if node.op != "softmax" or not node.inputs:
        return None
    steps: list[tuple[str, Value, Value]] = []
    at: Value = node.inputs[0]
    for _ in range(20):
        if not isinstance(at, Node) or at.op in PRODUCTS:
            steps.reverse()
            return Masked(node, steps) if isinstance(at, Node) and at.grad else None
        if at.op == "masked_fill" and len(at.inputs) > 2:
            steps.append(("hide", at.inputs[1], at.inputs[2]))
            at = at.inputs[0]
        elif at.op == "where" and len(at.inputs) > 2:
            first = isinstance(at.inputs[1], Node) and at.inputs[1].grad
            steps.append(("keep" if first else "hide", at.inputs[0], at.inputs[2 if first else 1]))
            at = at.inputs[1 if first else 2]
        elif at.op in ("add", "mul", "div", "sub") and len(at.inputs) == 2:
            own = [i for i in at.inputs if isinstance(i, Node) and i.grad and _scores(i)]
            beside = [i for i in at.inputs if i is not own[0]] if own else []
            if len(own) != 1 or len(beside) != 1 or (at.op == "sub" and own[0] is not at.inputs[0]):
                return None
            if at.op == "add" or (at.op == "sub" and not isinstance(beside[0], Node)):
                steps.append(("add", beside[0], None))
            at = own[0]
        elif (at.op in STRUCTURE and at.op not in ("getitem", "cat")) or at.op == "either":
            at = at.inputs[0] if at.op != "either" else None
        else:
            return None
    return None


def _scores(node: Node) -> bool:
    return any(n.op in PRODUCTS for n in ancestors(node, through=lambda n: n.op not in PRODUCTS and n.grad))


def key_of_its_own(node: Node) -> bool:
    """True for a layer of attention that puts a key of its own beside those that it is given: no row is ever empty."""
    layer = node.owner if isinstance(node.owner, Obj) else None
    return layer is not None and any(layer.get(w) not in (None, False) for w in ("add_zero_attn", "add_bias_kv"))


def handed(node: Node, word: str, place: int) -> Value:
    """An argument of one of torch's layers of attention."""
    if word in node.options:
        return node.options[word]
    data = [i for i in node.inputs if not (isinstance(i, Node) and i.op == "param")]
    return data[place] if place < len(data) else None


# ---------------------------------------------------------------------- small sequences
def seen(masked: Masked, leaf: Callable[[Node], Array | None]) -> Array:
    """True for (..., query, key) that is seen. Raises ``Unknown``."""
    bench = Bench(leaf=leaf)
    np = bench.np
    scores: Any = np.zeros((1, 1))
    for way, value, fill in masked.steps:
        if way == "add":
            if isinstance(value, int | float):
                continue
            scores = scores + bench.work(value)
            continue
        mask = bench.work(value)
        if way.startswith("auto"):
            hides = way == "auto hide"
            if mask.dtype != bool:
                scores = scores + mask
                continue
            scores = np.where(mask == hides, -np.inf, scores)
        else:
            scores = np.where(mask.astype(bool) == (way == "hide"), bench.number(fill), scores)
    if scores.ndim < 2 or max(scores.shape[-2:]) > MOST or np.isnan(scores).any():
        raise Unknown
    allowed: Array = scores > LOW
    return allowed


def sizes_of(node: Node) -> tuple[int, ...]:
    if node.shape.open:
        return (ROWS, LENGTH)
    dims = [d if d is not None else (ROWS if at == 0 else LENGTH) for at, d in enumerate(node.shape.dims)]
    if len(dims) > 1 and dims[0] > MOST:
        dims[0] = ROWS
    if not dims or not all(dims) or len(dims) > 3 or max(dims) > MOST:
        raise Unknown
    return tuple(dims)


def plain(node: Node) -> Array | None:
    """Sequences without padding, each one document, all of full length."""
    import numpy as np

    if node.grad or node.op in ("param", "option", "unknown"):
        return None
    if node.op == "size" and isinstance(node.inputs[0], Node) and len(node.inputs) > 1:
        at, whole = node.inputs[1], node.inputs[0].shape  # of what the network computes: the sizes of the sequences
        known = whole.dims[at] if isinstance(at, int) and not whole.open and at < len(whole.dims) else None
        return np.asarray(known if known is not None else ROWS if at == 0 else LENGTH)
    sizes = sizes_of(node)
    return np.full(sizes, sizes[0] if len(sizes) == 1 else 7)


def documents(node: Node) -> Array | None:
    """Rows of two documents."""
    import numpy as np

    if node.grad or node.op in ("param", "option", "unknown"):
        return None
    sizes = sizes_of(node)
    if len(sizes) != 2:
        return None
    return np.broadcast_to(np.arange(sizes[1]) // -(-sizes[1] // 2) + 7, sizes)


# ---------------------------------------------------------------------- what is wrong
def reversed_order(run: Rehearsing) -> Iterator[Answer]:
    """The past is hidden and the future is kept; or a mask of zeros and ones is added and hides nothing.

    Not said of networks that are trained on the token before, and read from the end."""
    if any(shift.ahead < 0 for shift in shifts(run)):
        return
    for masked in attentions(run):
        allowed = _square(masked)
        if allowed is None:
            continue
        import numpy as np

        size = allowed.shape[-1]
        above, below = np.triu_indices(size, 1), np.tril_indices(size, -1)
        place = blamed(masked)
        if allowed[..., above[0], above[1]].all() and not allowed[..., below[0], below[1]].any():
            yield Answer(place, "the past is hidden here, and the future is kept", _proof(masked, place))
        elif allowed.all() and _ones_and_zeros(masked):
            text = "this mask holds zeros and ones, and it is added to the scores: nothing is hidden by it"
            yield Answer(place, text, _proof(masked, place))


def rows_without_keys(run: Rehearsing) -> Iterator[Answer]:
    """A query that sees no key at all, though nothing is padding."""
    for masked in attentions(run):
        allowed = _square(masked)
        if allowed is None or allowed.any(-1).all() or repaired(run, masked.node) or key_of_its_own(masked.node):
            continue
        place = blamed(masked)
        if not allowed.any():
            text = "all keys of all tokens are hidden here, though nothing is padding"
        elif not allowed[..., 0, :].any() and allowed[..., 1:, :].any(-1).all():
            text = "the mask takes the diagonal too: the first row has nothing left for the softmax"
        else:
            continue
        yield Answer(place, text, _proof(masked, place))


def future_in_sight(run: Rehearsing) -> Iterator[Answer]:
    """A network that is trained on the next token sees it, through a mask that does not hide it."""
    told: set[int] = set()
    for shift in shifts(run):
        if shift.ahead != 1:
            continue
        inside = {id(n.place[0]) for n in ancestors(shift.logits) if n.place is not None}
        for masked in attentions(run):
            place = masked.node.place
            if place is None or id(place[0]) not in inside or id(place[0]) in told or not _own(masked, shift.fed):
                continue
            allowed = _square(masked)
            if allowed is None or not allowed.any(-1).all():
                continue
            import numpy as np  # only where there is a mask to be worked out: it takes longer to load than a script

            size = allowed.shape[-1]
            above, below = np.triu_indices(size, 1), np.tril_indices(size, -1)
            everything = allowed[..., above[0], above[1]].all()
            each = np.arange(size - 1)
            if allowed[..., each, each + 1].all() and allowed[..., below[0], below[1]].all():
                told.add(id(place[0]))
                lets = "hides nothing that comes later" if everything else "begins one place too late"
                text = f"this mask {lets}: the network is trained on the next token and sees it"
                at = blamed(masked)
                yield Answer(at, text, _proof(masked, at))


def documents_mixed(run: Rehearsing) -> Iterator[Answer]:
    """Tokens of other documents of a row are seen, though the mask looks at which document a token is of."""
    for masked in attentions(run):
        equal = [n for n in _masks(masked) if n.op in ("eq", "ne") and of_pairs(n)]
        if not equal:
            continue
        try:
            allowed = seen(masked, documents)
        except Unknown:
            continue
        if allowed.shape[-1] != allowed.shape[-2] or allowed.shape[-1] < 3:
            continue
        import numpy as np

        size = allowed.shape[-1]
        group = np.arange(size) // -(-size // 2)
        apart = group[:, None] > group[None, :]
        if allowed[..., apart].all() and allowed[..., np.eye(size, dtype=bool)].all():
            place = next((n.place for n in _masks(masked) if n.op in JOINED and n.place is not None), equal[0].place)
            if place is not None:
                text = "tokens of the documents before are seen as well: the mask does not keep documents apart"
                yield Answer(place, text, _proof(masked, place))


JOINED = frozenset(["or", "logical_or", "bitwise_or", "and", "logical_and", "bitwise_and"])


def of_pairs(node: Node) -> bool:
    """True for an equality of what one value of the data holds for queries and for keys."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    if len(sides) != 2 or any(n.op == "arange" for s in sides for n in ancestors(s)):
        return False
    roots = [{id(n) for n in ancestors(s) if n.op not in STRUCTURE} for s in sides]
    return bool(roots[0] & roots[1])


def _square(masked: Masked) -> Array | None:
    """What each token of a plain sequence sees of it; None where that can't be worked out, or for two sequences."""
    try:
        allowed = seen(masked, plain)
    except Unknown:
        return None
    return allowed if allowed.shape[-1] == allowed.shape[-2] and allowed.shape[-1] >= 3 else None


def _own(masked: Masked, fed: Node) -> bool:
    """True for an attention whose queries and keys come from the tokens that the network is trained on."""
    node = masked.node
    if node.op == "softmax":
        return any(n is fed for n in ancestors(node))
    at = 1 if node.op == "transformer" else 0
    given = [i for i in node.inputs if isinstance(i, Node) and i.op != "param"]
    return len(given) > at and any(n is fed for n in ancestors(given[at]))


def _masks(masked: Masked) -> Iterator[Node]:
    for _, value, _ in masked.steps:
        yield from ancestors(value, through=lambda n: not n.grad)


def _ones_and_zeros(masked: Masked) -> bool:
    """True where a mask that knows the order of the tokens is added as zeros and ones."""
    for way, value, _ in masked.steps:
        if way not in ("add", "auto keep", "auto hide") or not isinstance(value, Node) or value.grad:
            continue
        if not any(n.op in ORDERED for n in ancestors(value)):
            continue
        try:
            found = Bench(leaf=plain).work(value)
        except Unknown:
            continue
        if found.dtype != bool and set(found.reshape(-1).tolist()) == {0.0, 1.0}:
            return True
    return False


def blamed(masked: Masked) -> Place:
    """The line that decides: where a mask is turned round, where its order is made, else where it is applied."""
    found = list(_masks(masked))
    wrong = next((n for n in found if _other_way(n)), None)
    if wrong is not None and wrong.place is not None:
        return wrong.place
    for choice in (FLIPS, ORDERED):
        places = [n.place for n in found if n.op in choice and n.place is not None]
        if places:
            return places[0]
    plainly = (n.place for _, value, _ in masked.steps for n in ancestors(value) if n.op not in VIEWS)
    place = next((p for p in plainly if p is not None), masked.node.place)
    assert place is not None
    return place


def _other_way(node: Node) -> bool:
    """True for an upper triangle with its diagonal, or a lower one without: neither what is allowed nor what is hidden
    of a causal mask looks so."""
    if node.op not in ("tril", "triu"):
        return False
    rest = node.inputs[1 : len(node.inputs) - len(node.options)]
    diagonal = node.options.get("diagonal", node.options.get("k", rest[0] if rest else 0))
    return isinstance(diagonal, int) and (diagonal <= 0 if node.op == "triu" else diagonal < 0)


def _proof(masked: Masked, place: Place) -> tuple[Place, ...]:
    at = masked.node.place
    return (at,) if at is not None and at[0] is not place[0] else ()
