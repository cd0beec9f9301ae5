"""Networks that fill in what is hidden from them: is the loss about what is hidden, and is it hidden at all?

What is hidden of the inputs and what the loss counts are worked out together (``trial``), with the same random draws:
in a sentence of which every token is another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, given, trained, users
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown
from trainwreck.core.row import Row

ROWS, LENGTH = 6, 20
LEAST, MOST = 8, 3000
RANDOM = frozenset("rand rand_like bernoulli uniform random randperm permutation randn binomial choice".split())
MOSTLY = 0.9
"""Share of what counts that must be in sight: of the usual tenth that is left as it is, and another that is replaced by
any token (Devlin et al. 2019), far less is."""


class Filling(Row):
    """A loss over tokens, with what the network is given of the same tokens."""

    loss: Node
    shown: Node
    target: Node
    original: Node


def hidden_is_not_asked(run: Rehearsing) -> Iterator[Answer]:
    """The tokens that count in the loss are those that the network was shown."""
    told: set[int] = set()
    for filling in _fillings(run):
        if filling.loss.place is None or id(filling.loss.place[0]) in told:
            continue
        found = [_looked(run, filling, seed) for seed in range(3)]
        if any(f is None for f in found):
            continue
        texts = {f[0] for f in found if f is not None}
        first = found[0]
        if len(texts) == 1 and first is not None and first[1] is not None:
            told.add(id(filling.loss.place[0]))
            yield Answer(first[1], first[0], (filling.loss.place,))


def _fillings(run: Rehearsing) -> Iterator[Filling]:
    for loss in trained(run):
        if loss.op not in ("cross_entropy", "nll_loss"):
            continue
        target = given(loss, "target", 1)
        if not isinstance(target, Node):
            continue
        fed = [n.inputs[0] for n in ancestors(given(loss, "input", 0)) if n.op in ("embedding", "one_hot") and n.inputs]
        roots = {id(n): n for n in _originals(target)}
        for shown in fed:
            if not isinstance(shown, Node) or any(n.op == "arange" for n in ancestors(shown, through=_moves)):
                continue
            same = [n for n in _originals(shown) if id(n) in roots]
            random = any(n.op in RANDOM for side in (shown, target) for n in _masks(side))
            if len(same) == 1 and random and not _hidden_later(given(loss, "input", 0), shown, target):
                yield Filling(loss, shown, target, same[0])


def _hidden_later(logits: Value, shown: Node, target: Node) -> bool:
    """True where what was drawn to choose the tokens is used after they became vectors: those may be replaced there."""
    drawn = {id(n) for n in _masks(target) if n.op in RANDOM}
    return any(id(n) in drawn for n in ancestors(logits, through=lambda n: n is not shown))


def _moves(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("batch", "clone", "setitem", "masked_fill", "where", "stack", "either")


def _originals(value: Value) -> list[Node]:
    """The tokens before anything was hidden or left out of them."""
    found: list[Node] = []
    queue = [value] if isinstance(value, Node) else []
    for _ in range(60):
        if not queue:
            break
        node = queue.pop(0)
        sides: list[Value] = []
        if node.op in ("masked_fill", "setitem", "batch", "clone", "contiguous", "long", "to", "copy"):
            sides = list(node.inputs[:1])
        elif node.op == "where" and len(node.inputs) > 2:
            sides = [s for s in node.inputs[1:3] if isinstance(s, Node) and s.op not in ("full_like", "full", "tensor")]
        elif node.op in ("view", "reshape", "flatten", "type", "int", "detach"):
            sides = list(node.inputs[:1])
        nodes = [s for s in sides if isinstance(s, Node)]
        if nodes:
            queue += nodes
        else:
            found.append(node)
    return found


def _masks(value: Node) -> Iterator[Node]:
    """What decides where something is written into the tokens."""
    for node in ancestors(value, through=_moves):
        deciding: tuple[Value, ...] = ()
        if node.op in ("masked_fill", "where"):
            deciding = node.inputs[1:2] if node.op == "masked_fill" else node.inputs[:1]
        elif node.op == "setitem":
            deciding = node.inputs[2:3]
        for item in deciding:
            yield from ancestors(item)


def _looked(run: Rehearsing, filling: Filling, seed: int) -> tuple[str, Place | None] | None:
    """(what is wrong, where) in one draw; None where nothing is, or it can't be worked out."""
    import numpy as np

    drawn = (n for s in (filling.shown, filling.target) for n in _masks(s) if n.op in RANDOM and n.shape.dims)
    sizes = _sizes(next(drawn, filling.original) if filling.original.shape.open else filling.original)
    if sizes is None:
        return None
    tokens = 1000 + np.arange(int(np.prod(sizes))).reshape(sizes)
    bench = Bench(seed=seed)
    bench.leaf = lambda node: _collated(bench, node)
    bench.set(filling.original, tokens)
    try:
        shown = bench.work(filling.shown).reshape(-1)
        target = bench.work(filling.target).reshape(-1)
    except (Unknown, ValueError):
        return None
    flat = tokens.reshape(-1)
    if shown.shape != flat.shape or target.shape != flat.shape:
        return None
    ignored = filling.loss.options.get("ignore_index", -100)
    hidden = shown != flat
    counted = (target != ignored) & _weighed(run, filling, bench, flat.shape)
    if not counted.any():
        return None
    if (target[hidden & counted] != flat[hidden & counted]).all() and hidden.any() and (hidden & counted).any():
        return "the targets hold what hides the tokens, and not the tokens", _written_at(filling.shown)
    if counted.all() or (shown[counted] == target[counted]).mean() < MOSTLY:
        return None
    if not hidden.any():
        return "the network is shown the very tokens that it is to fill in: nothing is hidden", _written_at(
            filling.target
        )
    wrong = filling.shown if hidden.mean() > 0.5 else filling.target
    return "the loss counts the tokens that are in sight, and leaves out those that are hidden", _written_at(wrong)


def _collated(bench: Bench, node: Node) -> Array | None:
    """What a loader's collate function made, as it is."""
    inner = node.inputs[0] if node.op == "batch" and node.inputs else None
    if not isinstance(inner, Node):
        return None
    if inner.shape.open or node.shape.open:
        return bench.work(inner)
    rank = len(node.shape.dims)
    if len(inner.shape.dims) == rank:
        return bench.work(inner)
    return bench.work(inner)[None] if len(inner.shape.dims) == rank - 1 else None


def _written_at(value: Node) -> Place | None:
    """Where something is written into the tokens."""
    for node in ancestors(value, through=_moves):
        if node.op in ("masked_fill", "where", "setitem"):
            return node.place
    return value.place


def _weighed(run: Rehearsing, filling: Filling, bench: Bench, shape: tuple[int, ...]) -> Array:
    """Which of the single losses count, where they are multiplied with a mask."""
    import numpy as np

    everything = np.ones(shape, dtype=bool)
    if filling.loss.options.get("reduction") != "none":
        return everything
    at = filling.loss
    for _ in range(4):
        after = [u for u in users(run).get(id(at), ()) if u.grad]
        if len(after) != 1:
            return everything
        at = after[0]
        if at.op == "mul":
            weight = next((i for i in at.inputs if isinstance(i, Node) and not i.grad), None)
            if weight is None:
                return everything
            found = bench.work(weight).reshape(-1)
            return found != 0 if found.shape == shape else everything
        if at.op not in STRUCTURE:
            return everything
    return everything


def _sizes(node: Node) -> tuple[int, ...] | None:
    dims = node.shape.dims
    if node.shape.open:
        return (ROWS, LENGTH)
    known = [d if d is not None else (ROWS if at == 0 else LENGTH) for at, d in enumerate(dims)]
    total = 1
    for d in known:
        total *= d
    return tuple(known) if 1 <= len(known) <= 2 and LEAST <= total <= MOST else None
