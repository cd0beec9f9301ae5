"""Learning from views of the same data: identical views, collapse, scales of similarities, masked pairs."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.canonical import ALIKE, RANDOM, canon
from trainwreck.code.rehearsal.questions.redrawn import same_draw, seeding
from trainwreck.code.rehearsal.questions.roles import JOINS, RAW, STRUCTURE, backwards, behind
from trainwreck.code.rehearsal.questions.terms import Term, losses_of, number_of, parameters_behind, squared_error
from trainwreck.core.row import Row

PRODUCTS = frozenset(["matmul", "mm", "einsum", "bmm", "cosine_similarity", "inner", "cdist", "pairwise_distance"])
OUTPUTS = RAW | frozenset("layer_norm batch_norm relu gelu tanh silu group_norm embedding gru lstm mean".split())
AGE = attrgetter("serial")
LOUD = frozenset(["dropout", "dropout1d", "dropout2d", "alphadropout", "droppath", "bernoulli"])


class Pair(Row):
    """Two embeddings that a loss compares."""

    node: Node
    one: Node
    other: Node


def embeddings(value: Value) -> list[Node]:
    """What is compared, without scale and shape: the outputs of networks."""
    found: list[Node] = []
    seen: set[int] = set()

    def follow(item: Value, depth: int) -> None:
        for node in parts(item):
            if id(node) in seen or depth > 40:
                continue
            seen.add(id(node))
            inner = behind(node)
            if node.op in ("detach", "detach_", "data"):
                inner = [node.inputs[0]]
            if inner is not None:
                for one in inner:
                    follow(one, depth + 1)
            elif node.op in ("normalize", "t", "div", "mul", "linalg_normalize") and node.inputs:
                scaled = node.op in ("div", "mul") and len(node.inputs) > 1
                if not scaled or has_length(node.inputs[1]) or number_of(node.inputs[1]) is not None:
                    follow(node.inputs[0], depth + 1)
                else:
                    found.append(node)
            else:
                found.append(node)

    follow(value, 0)
    return found


def has_length(value: Value) -> bool:
    """True for the norm of a vector."""
    return any(n.op in ("norm", "vector_norm", "sqrt", "rsqrt") for n in near(value, 8))


def _comparisons(run: Rehearsing, event: Event) -> Iterator[tuple[Node, Node, Node]]:
    """The products and distances behind a loss, each with its two sides."""
    for node in ancestors(event.subject, through=lambda n: n.grad and n.op != "param"):
        if node.op in PRODUCTS and not node.owner:
            sides = [i for i in node.inputs if isinstance(i, Node)]
            if len(sides) < 2 and node.inputs and isinstance(node.inputs[-1], tuple | Items):
                sides = [p for p in parts(node.inputs[-1])]
            if len(sides) >= 2 and all(s.grad or _computed(s) for s in sides[:2]) and any(s.grad for s in sides[:2]):
                yield node, sides[0], sides[1]
        elif (pair := squared_error(node)) is not None and all(s.grad or _computed(s) for s in pair):
            yield node, *pair


def _computed(node: Node) -> bool:
    return any(n.op == "param" for n in ancestors(node))


def _contrastive(run: Rehearsing, event: Event) -> bool:
    """True where the loss compares each row with all others: the right one stands on the diagonal."""
    for node in ancestors(event.subject, through=lambda n: n.grad):
        if node.op in ("cross_entropy", "nll_loss") and len(node.inputs) > 1:
            target = node.inputs[1]
            several = isinstance(target, Node) and not target.shape.open and len(target.shape.dims) > 1
            if several and not any(n.op == "eye" for n in near(target, 12)):
                continue  # one for each position: tokens, that may be counted too
            if isinstance(target, Node) and any(n.op in ("arange", "eye", "roll") for n in near(target, 12)):
                return True
        if node.op in ("diag", "diagonal", "logsumexp", "triplet_margin_loss", "eye"):
            return True
    return False


def identical(run: Rehearsing) -> Iterator[Answer]:
    """A network that is given the same tensor twice, and a loss that compares the two results."""
    told: set[int] = set()
    for event in backwards(run):
        contrast, kernels = None, None
        for node, one, other in _comparisons(run, event):
            kernels = _kernels(event.subject) if kernels is None else kernels
            if id(node) in kernels:
                continue
            left, right = embeddings(one), embeddings(other)
            if any(n.op in LOUD and n.grad for side in (one, other) for n in ancestors(side)):
                continue
            found = {id(e): e for e in (*left, *right) if e.op not in _EMPTY and _computed(e)}
            pairs = [(a, b) for a in found.values() for b in found.values() if a.serial < b.serial]
            for a, b in pairs[:6]:
                plain = all(len(side) == 1 and side[0].op in OUTPUTS for side in (left, right))
                same = plain and parameters_behind(a).keys() == parameters_behind(b).keys()
                if contrast is None:
                    contrast = _contrastive(run, event)
                if not (same or contrast) or _stirred(run, a) or _stirred(run, b) or _of_one(a, b):
                    continue
                if any(e.name == "step" and a.serial < e.serial < b.serial for e in run.tape):
                    continue  # what the network answered before it was trained further
                place = _same_inputs(run, a, b) or _same_draws(run, a, b)
                if place is not None and id(place[0]) not in told:
                    told.add(id(place[0]))
                    text = "both views are one tensor: the loss compares a result with itself"
                    yield Answer(place, text, tuple(p for p in (node.place, event.place) if p is not None))
                    return
            for joined in found.values():
                place = _twice(joined)
                if place is not None and not _stirred(run, joined) and id(place[0]) not in told:
                    told.add(id(place[0]))
                    text = "the two halves of this batch are the same tensor: the loss compares a result with itself"
                    yield Answer(place, text, tuple(p for p in (node.place, event.place) if p is not None))
                    return


SOLVED = frozenset(["cholesky", "linalg_cholesky", "solve", "inv", "inverse", "logdet", "slogdet", "pinv", "eigh"])


def _kernels(loss: Value) -> set[int]:
    """What the matrices of linear systems are made of: products of all pairs there compare no views."""
    solved = [n for n in ancestors(loss, through=lambda n: n.grad) if n.op in SOLVED]
    return {id(m) for n in solved for m in ancestors(n)}


def _of_one(a: Node, b: Node) -> bool:
    """True where one is a measure of the other or made from it (what a decoder gives back, and what it was given), or
    both are computed from one output: a batch that is compared with itself."""
    if any(n is a for n in ancestors(b)) or any(n is b for n in ancestors(a)):
        return True
    if parameters_behind(a).keys() != parameters_behind(b).keys():
        return False
    return a.op not in OUTPUTS and b.op not in OUTPUTS and _last_layers(a) == _last_layers(b)


def _last_layers(node: Node) -> set[int]:
    """The outputs of layers that a value was computed from without a further layer."""
    return {id(n) for n in ancestors(node, through=lambda n: n.op not in RAW) if n.op in RAW}


def _stirred(run: Rehearsing, value: Node) -> bool:
    """True where the network itself is random."""
    return any(n.op in LOUD or n.op in ("call", "opaque", "unknown") for n in ancestors(value) if n.grad) or any(
        n.op in RANDOM and n.place is not None
        for n in ancestors(value, through=lambda n: n.grad)
        if not n.grad and _added(n, value)
    )


_EMPTY = frozenset(["param", "zeros_like", "empty_like", "ones_like", "full_like", "randn_like", "rand_like"])


def _added(noise: Node, value: Node) -> bool:
    """True where noise meets a value of the network (not the data)."""
    return any(n.grad and n.op in ("add", "mul", "sub") and any(i is noise for i in n.inputs) for n in ancestors(value))


def data_inputs(value: Node) -> list[Node]:
    """The data that a network computed ``value`` from: values without parameters behind, given to its layers."""
    found: dict[int, Node] = {}
    memo: dict[int, bool] = {}

    def bare(node: Node) -> bool:
        if id(node) not in memo:
            memo[id(node)] = not any(n.op == "param" for n in ancestors(node))
        return memo[id(node)]

    for node in ancestors(value, through=lambda n: n.op != "param" and not bare(n)):
        if node.op != "param" and bare(node) and node.op not in ("size", "attribute", "arange", "len", "counter"):
            if node.op in ("full", "zeros", "ones", "zeros_like", "ones_like", "tensor", "eye", "triu", "tril"):
                continue
            found[id(node)] = node
    return list(found.values())


def _same_inputs(run: Rehearsing, a: Node, b: Node) -> Place | None:
    """Where the second of two views is made that are the same tensor; None where they differ."""
    mine, other = data_inputs(a), data_inputs(b)
    if not mine or len(mine) != len(other) or len(mine) > 3:
        return None
    where: Place | None = None
    for one, two in zip(sorted(mine, key=AGE), sorted(other, key=AGE), strict=True):
        if one is not two and canon(one) != canon(two):
            if not _one_storage(one, two, a):
                return None
            where = _first_inplace(two) or two.place
        elif where is None:
            first, second = _sample(one), _sample(two)
            where = next((p for p, v in reversed(run.memo.get("aliases", ())) if v is second and first is second), None)
            where = where or (_made(one, two, b) if second is two else second.stack[-1] if first is second else None)
            where = where or _copied(first, second).place
    return where


def _same_draws(run: Rehearsing, a: Node, b: Node) -> Place | None:
    """Where the generator of the second of two views is made, or gets its seed: the one that drew the first one too."""
    mine, other = data_inputs(a), data_inputs(b)
    if len(mine) != 1 or len(other) != 1 or mine[0] is other[0]:
        return None
    keys = [canon(n, drawn=lambda draw: same_draw(run, draw)) for n in (mine[0], other[0])]
    seen = {id(n) for n in ancestors(mine[0])}
    made = [n for n in ancestors(other[0]) if n.op in RANDOM and id(n) not in seen] if keys[0] == keys[1] else []
    return next((place for n in made if (place := seeding(run, n)) is not None), None)


def _sample(node: Node) -> Node:
    """What a data set gives out for one place of a batch."""
    inner = list(parts(node.inputs)) if node.op == "batch" else []
    return inner[0] if len(inner) == 1 and inner[0].stack else node


def _copied(first: Node, second: Node) -> Node:
    """Where the second view leaves what both are copies of: its first copy."""
    behind_first = {id(n) for n in ancestors(first)}
    while second.op in ALIKE and second.inputs and isinstance(second.inputs[0], Node):
        if id(second.inputs[0]) in behind_first:
            break
        second = second.inputs[0]
    return second


def _made(one: Node, two: Node, result: Node) -> Place | None:
    """Where a second view was meant: it is made by its own call, or the network is called again on the first."""
    if one is not two and two.place is not None:
        return two.stack[-1] if two.stack and not _in_module(two) else two.place
    layer = next((n for n in ancestors(result) if any(i is two for i in n.inputs)), None)
    if layer is None:
        return two.place
    calls = [p for p in layer.stack if p is not None]
    return calls[-1] if calls and layer.owner is None else layer.place


def _in_module(node: Node) -> bool:
    return node.owner is not None


def _one_storage(one: Node, two: Node, first_result: Node) -> bool:
    """True where both are one tensor that was changed in place, and the network saw it after the last change."""
    if storage(one) is not storage(two) or not _changed(two):
        return False
    user = min((n.serial for n in ancestors(first_result) if any(i is one for i in n.inputs)), default=0)
    return user > two.serial


def storage(node: Node) -> Node:
    for _ in range(60):
        views = node.options.get("inplace") is True or node.op in STRUCTURE - _COPIES or node.op == "setitem"
        if not views or not node.inputs or not isinstance(node.inputs[0], Node):
            return node
        if node.op == "getitem" and not _slices(node.inputs[1] if len(node.inputs) > 1 else None):
            return node
        node = node.inputs[0]
    return node


_COPIES = frozenset(["clone", "repeat", "repeat_interleave", "index_select", "gather", "flip", "roll", "tile", "tensor",
                     "masked_select", "take_along_dim", "double", "half", "astype"])  # fmt: skip


def _slices(index: Value) -> bool:
    """True for an index that gives a view: slices and numbers, no tensors or lists."""
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, Items) for i in items):
        return False
    return all(not isinstance(i, Node) or i.op in ("counter", "index", "key") for i in items)


def _changed(node: Node) -> bool:
    at: Value = node
    for _ in range(60):
        if not isinstance(at, Node):
            return False
        if at.options.get("inplace") is True or at.op == "setitem":
            return True
        at = at.inputs[0] if at.inputs and at.op in STRUCTURE else None
    return False


def _first_inplace(node: Node) -> Place | None:
    place, at = None, node
    for _ in range(60):
        if at.options.get("inplace") is True or at.op == "setitem":
            place = at.place
        if not at.inputs or not isinstance(at.inputs[0], Node):
            break
        at = at.inputs[0]
    return place


def _twice(value: Node) -> Place | None:
    """Where one tensor is put twice into a batch that a network gets."""
    for node in data_inputs(value):
        at: Node = node
        for _ in range(6):
            if at.op in JOINS and at.inputs and isinstance(at.inputs[0], tuple | Items):
                items = list(parts(at.inputs[0]))
                if isinstance(at.inputs[0], Items) and (at.inputs[0].more or at.inputs[0].length not in (None, 2)):
                    break  # two that stand for many
                if len(items) == 2 and (items[0] is items[1] or canon(items[0]) == canon(items[1])):
                    return at.place
                if len(items) == 2 and storage(items[0]) is storage(items[1]) and _changed(items[1]):
                    return _first_inplace(items[1])
            if at.op not in STRUCTURE or not at.inputs or not isinstance(at.inputs[0], Node):
                break
            at = at.inputs[0]
    return None


# ---------------------------------------------------------------------- collapse
def attraction(term: Term) -> tuple[Node, Node] | None:
    """The two sides that a term pulls together."""
    node = term.node
    if node.op == "cosine_similarity" and term.sign < 0 and len(node.inputs) >= 2:
        sides: tuple[Value, ...] = node.inputs[:2]
    elif (pair := squared_error(node)) is not None and term.sign > 0:
        sides = pair
    elif node.op in ("mul", "einsum", "bmm", "matmul") and term.sign < 0 and len(node.inputs) >= 2:
        sides = node.inputs[-2:]
    elif node.op == "pairwise_distance" and term.sign > 0 and len(node.inputs) >= 2:
        sides = node.inputs[:2]
    else:
        return None
    one, other = sides
    return (one, other) if isinstance(one, Node) and isinstance(other, Node) else None


def collapsing(run: Rehearsing) -> Iterator[Answer]:
    """The whole loss pulls two outputs of one network together, and nothing keeps different samples apart."""
    for event, found in losses_of(run):
        pairs = [attraction(t) for t in found]
        if not pairs or any(p is None or not all(_computed(s) for s in p) for p in pairs):
            continue
        for term, pair in zip(found, pairs, strict=True):
            assert pair is not None
            why = "" if any(_kept_fixed(s, event) for s in pair) else _collapses(pair)
            if why and term.node.place is not None:
                yield Answer(term.node.place, why, (event.place,) if event.place is not None else ())
                return


def _kept_fixed(side: Node, event: Event) -> bool:
    """True for an embedding without a gradient that was made before the loop: a goal that stays where it is."""
    loops = {id(t.node) for t in event.turns}
    return not side.grad and bool(loops) and not any(id(t.node) in loops for n in embeddings(side) for t in n.turns)


def _collapses(pair: tuple[Node, Node]) -> str:
    sides = [embeddings(s) for s in pair]
    if any(len(s) != 1 or s[0].op not in OUTPUTS for s in sides):
        return ""
    one, other = sides[0][0], sides[1][0]
    if one is other or any(n.op in ("grad", "call", "opaque", "unknown", "argument") for s in (one, other)
                           for n in ancestors(s) if n.grad or n.op == "grad"):  # fmt: skip
        return ""
    behind_one, behind_other = parameters_behind(one), parameters_behind(other)
    if not behind_one or not behind_other or not data_inputs(one) or not data_inputs(other):
        return ""
    if pair[0].grad and pair[1].grad:
        shared = parameters_behind(one, through_grad=True).keys() & parameters_behind(other, through_grad=True).keys()
        if shared:
            return "the views are pulled together with a gradient on both sides, and nothing keeps samples apart"
        return ""
    if behind_one.keys() == behind_other.keys():
        return "the views are pulled together without a predictor between them, and nothing keeps samples apart"
    return ""
