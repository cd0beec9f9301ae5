"""Tokens on their way: from which values they come, and by how many positions they are moved."""

from __future__ import annotations

from collections import Counter

from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value, candidates
from trainwreck.core.row import Row

MOVES = frozenset(
    """view reshape flatten contiguous to long cuda cpu clone detach transpose permute t T ravel int unsqueeze squeeze
    tensor as_tensor from_numpy astype batch buffer pin_memory type float identity rearrange data expand
    expand_as""".split()
)
"""What leaves each token at its position."""
FILLED = frozenset(["full", "zeros", "full_like", "zeros_like", "new_full", "new_zeros"])
"""What gives the same token everywhere: one for the start, the end, or no label."""
COUNTS = frozenset("add sub mul floor_divide element int item getitem size tolist numpy".split())
"""What numbers of positions are computed with: the same ones give the same."""
END = "end"
"""Symbol of a position that is counted from the end."""


class Trail(Row):
    """Where tokens come from: the values at the root, the position of the first, and what else it depends on."""

    root: Node
    start: int
    symbols: tuple[tuple[object, int], ...]
    cut: Node | None
    """The slice nearest to the use."""
    cuts: tuple[Node, ...] = ()
    """All slices, that one first."""


def trail(value: Value) -> Trail | None:
    """None where the way can't be followed."""
    start = 0
    symbols: Counter[object] = Counter()
    cut: Node | None = None
    cuts: list[Node] = []
    at = value
    for _ in range(80):
        if isinstance(at, Node) and at.op == "either":
            known = [c for c in candidates(at) if c is not None]
            if len(known) == 1:
                at = known[0]
                continue
        if not isinstance(at, Node):
            return None
        if at.op == "getitem" and len(at.inputs) > 1:
            index = at.inputs[1] if isinstance(at.inputs[1], tuple) else (at.inputs[1],)
            if any(isinstance(i, Obj) and _moves(i) for i in index):
                cut = cut or at
                cuts.append(at)
            for part in index:
                moved = start_of(part)
                if moved is None:
                    return None
                start += moved[0]
                symbols.update(moved[1])
            at = at.inputs[0]
        elif at.op == "roll" and len(at.inputs) > 1 and isinstance(at.inputs[1], int):
            start -= at.inputs[1]
            cut = cut or at
            at = at.inputs[0]
        elif at.op == "setitem" and (written := _written_over(at)) is not None:
            symbols["row"] += 1
            at = written
        elif at.op in ("masked_fill", "setitem") and at.inputs:
            at = at.inputs[0]
        elif at.op == "add" and (behind := _behind(at)) is not None:
            at, before = behind
            if isinstance(before, int):
                start -= before
            else:
                symbols["behind", before] += 1
        elif at.op in ("list", "copy") and at.inputs and isinstance(at.inputs[0], Node):
            at = at.inputs[0]
        elif at.op == "element" and at.inputs and isinstance(at.inputs[0], Node):
            symbols["row"] += 1
            at = at.inputs[0]
        elif at.op in ("cat", "concat") and (joined := _behind_start(at)) is not None:
            start -= 1
            cut = cut or at
            at = joined
        elif at.op == "pad" and (left := _padded(at)) is not None:
            start -= left
            cut = cut or (at if left else None)
            at = at.inputs[0]
        elif at.op in ("stack", "cat") and (first := _first(at)) is not None:
            at = first
        elif at.op in MOVES and at.inputs and isinstance(at.inputs[0], Node):
            at = at.inputs[0]
        else:
            return Trail(at, start, tuple(sorted(symbols.items(), key=repr)), cut, tuple(cuts))
    return None


def _moves(part: Obj) -> bool:
    """True for a slice that leaves out the first tokens, or as many at the end: no limit of the length."""
    begin, end = (*part.args, None, None)[:2]
    return begin not in (None, 0) or (end is not None and not (isinstance(end, int) and end > 1))


def _written_over(node: Node) -> Value:
    """The tokens that are written from the start of a row on into what holds the same one everywhere, for padding:
    ``ids[i, : len(row)] = row``."""
    base = node.inputs[0]
    while isinstance(base, Node) and base.op == "setitem":
        base = base.inputs[0]
    index = node.inputs[2] if len(node.inputs) > 2 else None
    last = index[-1] if isinstance(index, tuple) and len(index) > 1 else None
    begins = isinstance(last, Obj) and last.kind == "builtins.slice" and last.args[:1] in ((None,), (0,))
    tokens = node.inputs[1]
    filled = isinstance(base, Node) and base.op in FILLED
    return tokens if filled and begins and isinstance(tokens, Node) and tokens.op not in ("index", "counter") else None


def _behind(node: Node) -> tuple[Node, int | object] | None:
    """Of two lists that are put together, the second one, and how many tokens the first one has: a number, or what
    tells it."""
    if len(node.inputs) < 2 or not _is_list(node):
        return None
    first, second = node.inputs[:2]
    if not isinstance(second, Node):
        return None
    if isinstance(first, Items):
        if not first.more:
            return second, len(first.items)
        return (second, id(first.source)) if isinstance(first.source, Node) else None
    return (second, id(first)) if isinstance(first, Node) else None


def _is_list(value: Value, depth: int = 0) -> bool:
    """True for lists, and what was put together from one."""
    if isinstance(value, Items):
        return value.kind == "list"
    if not isinstance(value, Node) or depth > MAX_LISTS:
        return False
    if value.op == "add":
        return any(_is_list(i, depth + 1) for i in value.inputs[:2])
    return value.op in ("list", "tolist")


MAX_LISTS = 8


def _first(node: Node) -> Node | None:
    held = node.inputs[0] if node.inputs else None
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
    return items[0] if items and isinstance(items[0], Node) else None


def _behind_start(node: Node) -> Node | None:
    """What a token for the start is put before: all positions move back by one."""
    held = node.inputs[0] if node.inputs else None
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
    if len(items) != 2 or not all(isinstance(i, Node) for i in items) or getattr(held, "more", False):
        return None
    return items[1] if items[0].op in FILLED else None


def _padded(node: Node) -> int | None:
    """How many tokens are put before the first one of each row; None where that can't be told."""
    widths = node.options.get("pad", node.inputs[1] if len(node.inputs) > 1 else None)
    items = list(widths) if isinstance(widths, tuple) else widths.items if isinstance(widths, Items) else []
    known = bool(items) and all(isinstance(w, int) for w in items) and not any(items[2:])
    return items[0] if known and isinstance(node.inputs[0], Node) and isinstance(items[0], int) else None


def put_behind(value: Value) -> Node | None:
    """Where tokens that the network is given get one more behind the last: there the first was to have one before."""
    for _ in range(20):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in ("cat", "concat", "concatenate"):
            held = value.inputs[0]
            items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
            last = items[-1] if len(items) == 2 else None
            return value if isinstance(last, Node) and last.op in FILLED else None
        if value.op == "pad":
            return value if _padded(value) == 0 else None
        if value.op not in MOVES | {"getitem"}:
            return None
        value = value.inputs[0]
    return None


def start_of(part: Value) -> tuple[int, list[object]] | None:
    """Where a slice starts: a number and symbols; None where it can't be told."""
    if part is None or part is Ellipsis:
        return 0, []
    if isinstance(part, Obj):
        begin, _, step = (*part.args, None, None, None)[:3]
        if step not in (None, 1):
            return None
        if begin is None:
            return 0, []
        if isinstance(begin, int):
            return (begin, []) if begin >= 0 else (begin, [END])
        return _sum(begin) if isinstance(begin, Node) else None
    if isinstance(part, Node):
        return 0, [("row", _key(part))]
    return (0, [("row", part)]) if isinstance(part, int | str) else None


def _sum(value: Node) -> tuple[int, list[object]]:
    """``i + 1`` as (1, [i])."""
    if value.op in ("add", "sub") and len(value.inputs) == 2:
        one, other = value.inputs
        if isinstance(one, int) and value.op == "add":
            one, other = other, one
        if isinstance(other, int) and isinstance(one, Node):
            inner, symbols = _sum(one)
            return inner + (other if value.op == "add" else -other), symbols
    return 0, [_key(value)]


def _key(value: Value, depth: int = 0) -> object:
    """Equal for values that are computed alike from the same ones."""
    if not isinstance(value, Node) or depth > 8:
        return id(value) if isinstance(value, Node | Obj) else value
    if value.op in COUNTS:
        return (value.op, *(_key(i, depth + 1) for i in value.inputs))
    return id(value)
