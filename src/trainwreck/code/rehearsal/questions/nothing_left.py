"""Sequences of which some hold nothing: does a softmax over their places have anything left?

A mask of padding hides all of an empty sequence. That one can be empty is shown by the program itself: the number of
its elements is drawn from 0 upwards, or is 0 in one branch. Silent where the program asks for empty ones anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.masks import FLIPS, hidings, repaired
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds, trained
from trainwreck.code.rehearsal.questions.visibility import STACKS, handed, key_of_its_own

DEEP = 40
DRAWS = frozenset(["randint", "integers", "randrange", "poisson"])
PASSES = frozenset(
    """batch from_numpy tensor as_tensor array asarray astype long int clone to copy contiguous stack pin_memory numpy
    cuda cpu detach bool float buffer""".split()
)
"""What hands an array on, row by row."""
HANDED = frozenset(["int", "item", "getitem", "len", "element", "batch"])
WALKS = frozenset("element randperm permutation split index arange counter part".split())
"""Numbers of rows that leave none out on purpose."""
COMPARES: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "le": lambda a, b: a <= b,
}
OFTEN = 1e-3
"""A row in a thousand: a batch or two in every epoch of the smallest data sets has one."""


class Empty:
    """Finds what an empty sequence gives, and remembers where the program makes it empty."""

    def __init__(self, run: Rehearsing) -> None:
        self.run = run
        self.drawn: list[Node] = []
        self.made: Place | None = None

    # ------------------------------------------------------------------ masks
    def truth(self, mask: Value, depth: int = 0) -> bool | None:
        """What a mask is all along an empty sequence; None where that isn't known, or it is not the same everywhere."""
        if not isinstance(mask, Node) or depth > DEEP:
            return None
        first, second = (*mask.inputs, None, None)[:2]
        if mask.op in FLIPS or (mask.op == "sub" and first in (1, 1.0) and not isinstance(first, Node)):
            found = self.truth(second if mask.op == "sub" else first, depth + 1)
            return None if found is None else not found
        if mask.op in COMPARES and len(mask.inputs) == 2:
            return self._compared(mask, depth)
        if mask.op in ("or", "logical_or", "bitwise_or", "and", "logical_and", "bitwise_and"):
            decides = "or" in mask.op
            sides = [self.truth(i, depth + 1) for i in (first, second)]
            if decides in sides:
                return decides
            return (not decides) if sides == [not decides] * 2 else None
        if mask.op == "getitem":
            return self.truth(first, depth + 1) if _walked(second) else None
        if (mask.op in STRUCTURE and mask.op not in ("cat", "setitem")) or mask.op in PASSES:
            inner = first.items[0] if isinstance(first, Items) and len(first.items) == 1 else first
            return self.truth(inner, depth + 1)
        return None

    def _compared(self, mask: Node, depth: int) -> bool | None:
        first, second = mask.inputs
        test = COMPARES[mask.op]
        for one, other, turned in ((first, second, False), (second, first, True)):
            if isinstance(other, int | float) and not isinstance(other, bool):
                filler = self.filler(one)
                if filler is not None:
                    return test(other, filler) if turned else test(filler, other)
                inner = self.truth(one, depth + 1) if other in (0, 1) else None
                return None if inner is None else test(float(inner), other)
            if _positions(one) and isinstance(other, Node) and self.none(_column(other)):
                places = (0.0, 1.0, 5.0)
                found = {test(0.0, p) if turned else test(p, 0.0) for p in places}
                return found.pop() if len(found) == 1 else None
        return None

    # ------------------------------------------------------------------ rows
    def filler(self, value: Value, depth: int = 0) -> float | None:
        """What stands all along a row of ``value`` that is empty; None where no row can be."""
        if not isinstance(value, Node) or depth > DEEP:
            return None
        first, second = (*value.inputs, None, None)[:2]
        if value.op == "setitem":
            return self._written(value, depth)
        if value.op == "getitem":
            return self.filler(first, depth + 1) if _walked(second) else None
        if value.op == "element" and isinstance(first, Node):
            return self.filler(first, depth + 1)
        if value.op == "pad_sequence":
            return self._padded(first, value, depth)
        if value.op == "pad" and self.nothing(first):
            filled = value.options.get("value", 0)
            return float(filled) if isinstance(filled, int | float) and value.options.get("mode") is None else None
        if value.op in PASSES or value.op == "unsqueeze":
            held = first.items if isinstance(first, Items) else list(first) if isinstance(first, tuple) else [first]
            found = [self.filler(h, depth + 1) for h in held]
            return next((f for f in found if f is not None), None)
        return None

    def _written(self, value: Node, depth: int) -> float | None:
        """An array that was made full of one number, and into which rows are written that may hold nothing."""
        at: Value = value
        empty = False
        for _ in range(DEEP):
            if not isinstance(at, Node):
                return None
            if at.op != "setitem" or len(at.inputs) < 3:
                break
            index = at.inputs[2] if isinstance(at.inputs[2], tuple) else (at.inputs[2],)
            if not any(self._no_place(i) for i in index):
                return None
            empty, at = True, at.inputs[0]
        if not empty or not isinstance(at, Node):
            return None
        if at.op in ("zeros", "zeros_like", "new_zeros"):
            return 0.0
        filled = at.options.get("fill_value", at.inputs[1] if len(at.inputs) > 1 else None)
        known = at.op in ("full", "new_full", "full_like") and isinstance(filled, int | float)
        return float(filled) if known and isinstance(filled, int | float) else None

    def _padded(self, rows: Value, value: Node, depth: int) -> float | None:
        filled = value.options.get("padding_value", 0)
        if not isinstance(filled, int | float):
            return None
        return float(filled) if any(self.nothing(p) for p in parts(rows)) else None

    def _no_place(self, index: Value) -> bool:
        """True for a slice that may select nothing."""
        if not isinstance(index, Obj) or index.kind != "builtins.slice":
            return False
        low, high, step = index.args
        if step is not None:
            return False
        if low in (None, 0) and not isinstance(low, Node):
            return self.none(high)
        if isinstance(high, Node) and high.op == "add" and any(i is low or i == low for i in high.inputs[:2]):
            rest = [i for i in high.inputs[:2] if not (i is low or (not isinstance(i, Node) and i == low))]
            return len(rest) == 1 and self.none(rest[0])
        if high is None and isinstance(low, Node) and low.op == "sub" and len(low.inputs) == 2:
            return self.none(low.inputs[1])
        return False

    # ------------------------------------------------------------------ counts
    def none(self, count: Value, depth: int = 0) -> bool:
        """True for a number of elements that is 0 at times."""
        if depth > DEEP:
            return False
        known = candidates(count)
        if len(known) > 1:
            if any(k == 0 and isinstance(k, int) and not isinstance(k, bool) for k in known):
                return self._note(count)
            return any(self.none(k, depth + 1) for k in known)
        if not isinstance(count, Node):
            return False
        first = count.inputs[0] if count.inputs else None
        if count.op in DRAWS:
            return self._note(count) if count.op == "poisson" or bounds(count).low == 0 else False
        if count.op == "len":
            return self.nothing(first, depth + 1)
        if count.op in ("min", "max") and count.full.startswith("builtins.") and len(count.inputs) == 2:
            rest = [i for i in count.inputs if isinstance(i, Node)]
            least = [i for i in count.inputs if isinstance(i, int)]
            if count.op == "max" and any(n > 0 for n in least):
                return False
            return len(rest) == 1 and self.none(rest[0], depth + 1)
        if count.op in ("tensor", "as_tensor", "stack", "array") and isinstance(first, Items):
            return any(self.none(i, depth + 1) for i in first.items)
        if count.op == "getitem":
            return _walked(count.inputs[1] if len(count.inputs) > 1 else None) and self.none(first, depth + 1)
        if count.op in PASSES or count.op in ("item", "element", "unsqueeze", "view", "reshape", "expand"):
            return self.none(first, depth + 1)
        if count.op == "size" or (count.op == "numel" and first is not None):
            return self.nothing(first, depth + 1)
        return False

    def nothing(self, row: Value, depth: int = 0) -> bool:
        """True for a row that holds no element at times."""
        if not isinstance(row, Node) or depth > DEEP:
            return False
        if row.op == "either":
            return any(self.nothing(c, depth + 1) for c in candidates(row))
        first = row.inputs[0] if row.inputs else None
        if row.op in ("randint", "integers", "choice", "randn", "normal", "rand", "uniform", "zeros", "randperm"):
            sizes = [v for v in (row.options.get("size"), *row.inputs) if isinstance(v, tuple)]
            one = [row.options["size"]] if isinstance(row.options.get("size"), Node) else []
            return any(len(s) == 1 and self.none(s[0], depth + 1) for s in sizes) or any(self.none(n) for n in one)
        if row.op == "getitem":
            index = row.inputs[1] if len(row.inputs) > 1 else None
            return self._no_place(index) or (_walked(index) and self.nothing(first, depth + 1))
        if row.op in PASSES or row.op in ("add", "element"):
            return self.nothing(first, depth + 1)
        return False

    def _note(self, count: Value) -> bool:
        if isinstance(count, Node):
            self.drawn.append(count)
            self.made = self.made or count.place
        return True

    def asked(self) -> bool:
        """True if the program tests the number of elements for being none."""
        ids = {id(n) for n in self.drawn}
        for node in self.run.nodes:
            if node.op == "not" and any(self._counts(i, ids) for i in node.inputs):
                return True
            if node.op not in COMPARES or len(node.inputs) != 2:
                continue
            for one, other in (node.inputs, node.inputs[::-1]):
                if isinstance(other, int | float) and other <= 2 and self._counts(one, ids):
                    return True
        plain = (*self.run.memo.get("tested", ()), *self.run.memo.get("sifted", ()))
        return any(self._counts(test, ids) for test, _ in plain)

    def _counts(self, value: Value, ids: set[int]) -> bool:
        """True for the number of elements that one of these draws decides about, and for the elements themselves."""
        if id(_bare(value)) in ids:
            return True
        other = Empty(self.run)
        return (other.none(value) or other.nothing(value)) and bool(ids & {id(n) for n in other.drawn})


def _bare(value: Value) -> Value:
    """A count without what only hands it on."""
    while (
        isinstance(value, Node) and value.op in ("int", "item", "getitem", "len", "element", "batch") and value.inputs
    ):
        value = value.inputs[0]
    return value


def _column(lengths: Node) -> Node:
    """``lengths[:, None]``: the lengths."""
    while lengths.op in ("getitem", "unsqueeze", "view", "reshape") and isinstance(lengths.inputs[0], Node):
        lengths = lengths.inputs[0]
    return lengths


def _positions(value: Value) -> bool:
    """True for positions 0, 1, 2, ..."""
    while isinstance(value, Node) and value.op in (*STRUCTURE, "to") and value.inputs:
        value = value.inputs[0]
    if not isinstance(value, Node) or value.op != "arange":
        return False
    numbers = [i for i in value.inputs if isinstance(i, int | float)]
    return len(value.inputs) - len(value.options) <= 1 or (bool(numbers) and numbers[0] == 0)


def _walked(index: Value) -> bool:
    """True for an index that picks rows by the way, not by what they hold."""
    for part in index if isinstance(index, tuple) else (index,):
        if part is None or part is Ellipsis or isinstance(part, int | Obj):
            continue
        if not isinstance(part, Node) or part.op not in WALKS:
            return False
    return True


def empty_sequences(run: Rehearsing) -> Iterator[Answer]:
    """A softmax over the places of sequences that may be empty, after what is padding was hidden."""
    told: set[int] = set()
    for at, mask, hides in _masks(run):
        if at.place is None or id(at.place[0]) in told or repaired(run, at):
            continue
        empty = Empty(run)
        if empty.truth(mask) is hides and not empty.asked():
            told.add(id(at.place[0]))
            proof = (empty.made,) if empty.made is not None else ()
            yield Answer(at.place, "a sequence may be empty: then everything is hidden, and the softmax is NaN", proof)
        elif (share := _all_hidden(mask, hides)) is not None and share >= OFTEN:
            told.add(id(at.place[0]))
            text = f"the mask is drawn for each place: in {share:.2g} of all rows it hides every one"
            yield Answer(at.place, text, ())


def _masks(run: Rehearsing) -> Iterator[tuple[Node, Value, bool]]:
    """(where it is applied, mask, whether it hides what is true) of all masks that leave nothing of what they hide."""
    for hidden in hidings(run):
        if hidden.fill == -math.inf:
            yield hidden.at, hidden.mask, hidden.true
    for node in trained(run):
        if node.op in STACKS:
            _, _, word, place = STACKS[node.op]
            if not key_of_its_own(node):
                yield node, handed(node, word, place), True
        elif node.op == "scaled_dot_product_attention":
            rest = node.inputs[3 : len(node.inputs) - len(node.options)]
            yield node, node.options.get("attn_mask", rest[0] if rest else None), False


def _all_hidden(mask: Value, hides: bool) -> float | None:
    """In which share of the rows a mask that is drawn anew for each place hides everything."""
    negated = False
    at = mask
    for _ in range(DEEP):
        if not isinstance(at, Node):
            return None
        if at.op in FLIPS:
            negated = not negated
        elif at.op not in ("unsqueeze", "bool", "to", "batch"):
            break
        at = at.inputs[0] if at.inputs else None
    if not isinstance(at, Node) or at.op not in ("lt", "le", "gt", "ge") or len(at.inputs) != 2:
        return None
    drawn, limit = at.inputs
    if not isinstance(drawn, Node) or drawn.op not in ("rand", "rand_like", "random") or not isinstance(limit, float):
        return None
    size = at.shape.dims[-1] if at.shape.dims and not at.shape.open else None
    if not isinstance(size, int) or not 0 < limit < 1 or (len(at.shape.dims) > 1 and at.shape.dims[-2] == size):
        return None
    true = limit if at.op in ("lt", "le") else 1 - limit
    hidden = true if hides != negated else 1 - true
    return float(hidden**size)
