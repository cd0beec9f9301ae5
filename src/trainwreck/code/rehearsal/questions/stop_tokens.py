"""Generation that waits for a token which no target holds: which numbers occur among the targets at all?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.monotone import judged
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, bounds, given, losses

PICKS = frozenset(["argmax", "multinomial", "topk", "max", "sample"])
LIMIT = 200
FEW = 8
Span = tuple[int, int]
"""The whole numbers from the first to the second."""


def never_taught(run: Rehearsing) -> Iterator[Answer]:
    """A token that the network chose is held against a number, in a loop of decoding, that no target ever is."""
    waits = [(n, int(c)) for n in run.nodes for c in [_waited_for(n)] if c is not None]
    for loss in losses(run, "cross_entropy", "nll_loss") if waits else ():
        scores, target = given(loss, "input", 0), given(loss, "target", 1)
        wide = isinstance(scores, Node) and not scores.shape.open and len(scores.shape.dims) > 1
        classes = scores.shape.dims[1] if wide and isinstance(scores, Node) else None
        spans = numbers(target)
        if spans is None or classes is None or not isinstance(target, Node):
            continue
        for wait, number in waits:
            inside = any(low <= number <= high for low, high in spans)
            if inside or not 0 <= number < classes or number == loss.options.get("ignore_index") or wait.place is None:
                continue
            text = f"decoding waits for token {number}, and no target holds it: the network never learns to stop"
            yield Answer(_made_at(target) or wait.place, text, (wait.place,))
            return


def _waited_for(node: Node) -> int | None:
    """The number that a chosen token is compared with, inside of a loop."""
    if node.op != "eq" or node.grad or not node.turns or len(node.inputs) < 2:
        return None
    token, number = node.inputs[:2]
    if type(number) is not int or not isinstance(token, Node):
        return None
    picked = any(n.op in PICKS and judged(n) for n in near(token, FEW))
    asked = any(n.op in PICKS and judged(n) and n.turns[-1:] == node.turns[-1:] for n in near(token, FEW))
    return number if picked and asked else None


def _made_at(target: Node) -> Place | None:
    """Where the rows of targets are put together: the innermost joining of tokens, else the outermost."""
    joined = [n for n in ancestors(target) if n.op in (*JOINS, "pad_sequence", "tensor") and n.place is not None]
    rows = [n for n in joined if n.op in JOINS]
    return rows[-1].place if rows else joined[0].place if joined else None


# ---------------------------------------------------------------------- which numbers a value holds
def numbers(value: Value) -> list[Span] | None:
    """Intervals that hold every element of whole numbers; None where some are not known."""
    found: list[Span] = []
    seen: set[int] = set()

    def follow(item: Value) -> bool:
        if isinstance(item, bool):
            return False
        if isinstance(item, int):
            found.append((item, item))
            return True
        if isinstance(item, tuple | Items):
            held = list(item) if isinstance(item, tuple) else item.items
            return bool(held) and all(follow(i) for i in held)
        if not isinstance(item, Node) or len(seen) > LIMIT:
            return False
        if id(item) in seen:
            return True
        seen.add(id(item))
        return _computed(item, follow, found)

    return found if follow(value) else None


def _computed(node: Node, follow: Callable[[Value], bool], found: list[Span]) -> bool:
    first = node.inputs[0] if node.inputs else None
    rest = node.inputs[1:]
    if node.op == "either":
        return all(follow(c) for c in candidates(node))
    if node.op in ("randint", "integers", "counter") or (node.op in ("randperm", "arange") and len(node.inputs) == 1):
        span = bounds(node)
        if node.op in ("randperm", "arange"):
            found += [(0, first - 1)] if isinstance(first, int) else []
            return isinstance(first, int)
        if abs(span.low) == float("inf") or abs(span.high) == float("inf"):
            return False
        found.append((int(span.low), int(span.high)))
        return True
    if node.op in ("zeros", "ones", "zeros_like", "ones_like", "new_zeros", "new_ones"):
        found.append((1, 1) if "ones" in node.op else (0, 0))
        return True
    if node.op in ("full", "full_like", "new_full"):
        return follow(node.get("fill_value", 2 if node.op == "new_full" else 1))
    if node.op == "pad_sequence":
        return follow(first) and follow(node.get("padding_value", 2, 0))
    if node.op == "pad":
        return follow(first) and follow(node.get("value", 3, 0))
    if node.op == "masked_fill" and len(node.inputs) > 2:
        return follow(first) and follow(node.inputs[2])
    if node.op == "setitem" and len(node.inputs) > 1:
        return follow(first) and follow(node.inputs[1])
    if node.op == "where" and len(node.inputs) > 2:
        return follow(node.inputs[1]) and follow(node.inputs[2])
    if node.op in ("remainder", "mod", "fmod") and rest and type(rest[0]) is int:
        found.append((0, rest[0] - 1))
        return True
    if node.op == "add" and any(isinstance(i, Items) for i in node.inputs):
        return all(follow(i) for i in node.inputs)  # lists one behind the other
    if node.op in ("add", "sub") and len(node.inputs) == 2 and type(rest[0]) is int and isinstance(first, Node):
        inner = numbers(first)
        by = rest[0] if node.op == "add" else -rest[0]
        found += [(low + by, high + by) for low, high in inner or ()]
        return inner is not None
    if node.op in ("tensor", "as_tensor", "array", "asarray", "LongTensor", *JOINS):
        return follow(first)
    moved = node.op in STRUCTURE or node.op in ("part", "element", "flip", "roll", "sort", "batch", "tolist", "list")
    slices = node.op == "getitem" and isinstance(first, Obj)
    return moved and not slices and follow(first)


__all__ = ["never_taught", "numbers"]
