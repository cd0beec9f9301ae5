"""Windows of a series that lie row below row: does the row hold the element of the series that it is to tell?

Other windows are cut one by one, at a number that window and target share (``windows``). Here each side is cut at
once, ``s.unfold(0, n, 1)`` or ``sliding_window_view(s, n)`` against ``s[n:]``, and the rows tell what is meant."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.lags import ELEMENTWISE
from trainwreck.code.rehearsal.questions.paths import meets, statistic
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.windows import (
    ADDS,
    GATHERS,
    PASSES,
    Linear,
    Window,
    linear,
    number,
    part_by_numbers,
    picks,
    window_of,
)

ROW = hash("row")
"""Stands for the number of the row, which window and target have in common."""
CUT = frozenset(["unfold", "sliding_window_view"])
TESTS = frozenset(["gt", "ge", "lt", "le", "sign"])
"""What makes classes of the numbers that are to be told."""
DEEP = 12
MOST = 400


def target_in_the_row(run: Rehearsing) -> Iterator[Answer]:
    """Row ``i`` of the windows reaches to element ``i`` of the targets, which are the same series cut elsewhere."""
    for event in backwards(run):
        for node, inside, outside in meets(event.subject):
            if node.op in ADDS:
                continue
            targets = [w for n in outside for w in _behind(n, learned=False) if w[0].single]
            given = [w for n in inside for w in _behind(n, learned=True) if not w[0].single] if targets else []
            for target, listed in targets:
                for window, by_turns in given:
                    if (listed and by_turns) or not _holds(window, target):
                        continue  # both by turns of a loop: ``windows`` compares those
                    moved = window.first.constant != 0 and not by_turns
                    places = [p for p in ((window if moved else target).place, target.place) if p is not None]
                    if places:
                        text = "each window reaches to the very element of the series that it is to tell, or behind it"
                        yield Answer(places[0], text, tuple(p for p in (window.place, event.place) if p is not None))
                        return


def _holds(window: Window, target: Window) -> bool:
    """The element lies in the window, behind its first one (what lies before all of it is told backwards in time)."""
    start, end = target.first.less(window.first), window.last.less(target.first)
    return window.series is target.series and start is not None and end is not None and start > 0 and end >= 0


def _behind(value: Node, *, learned: bool) -> list[tuple[Window, bool]]:
    """The windows, or elements by row, behind a value, each with whether a loop cut it turn by turn.

    Only through what leaves the elements as they are: a product may put some of them out."""
    found: list[tuple[Window, bool]] = []
    queue, seen = [value], {id(value)}
    while queue and len(seen) < MOST:
        node = queue.pop()
        if not (picks(node) and isinstance(node.inputs[1], Node)):
            window = _rows(node)
            if window is not None:
                found.append(window)
                continue
        data = [n for i in node.inputs for n in parts(i)]
        if node.op in ELEMENTWISE | TESTS and not node.grad:
            data = [n for n in data if not statistic(n)]
            if len(data) != 1:
                continue
        elif picks(node):
            data = list(parts(node.inputs[0]))
        elif node.op == "param" or _listed(node) or not (node.op in PASSES or (learned and node.grad)):
            continue
        for inner in data:
            if id(inner) not in seen:
                seen.add(id(inner))
                queue.append(inner)
    return found


def _listed(node: Node) -> bool:
    """True for rows that a loop made: what one of them holds is no row by itself."""
    first = node.inputs[0] if node.inputs else None
    return node.op in GATHERS and isinstance(first, Items) and first.more


def _rows(node: Node, depth: int = 0) -> tuple[Window, bool] | None:
    """What each row of ``node`` holds of a series; True with it where the rows were cut by the turns of a loop."""
    first = node.inputs[0] if node.inputs else None
    if depth > DEEP or node.grad or not isinstance(first, Node | Items):
        return None
    if node.op in GATHERS and isinstance(first, Items):
        window = _by_turns(node, first)
        return (window, True) if window is not None else None
    if not isinstance(first, Node):
        return None
    if node.op in CUT:
        window = _at_once(node, first)
        return (window, False) if window is not None else None
    if node.op in ("numpy", "from_numpy", "tensor", "as_tensor", "float", "astype", "copy", "contiguous", "array"):
        return _rows(first, depth + 1)
    if node.op != "getitem" or len(node.inputs) < 2:
        return None
    index = node.inputs[1]
    rows, *rest = index if isinstance(index, tuple) else (index,)
    if not isinstance(rows, Obj) or rows.kind != "builtins.slice" or rows.args[2] not in (None, 1):
        return None
    inner = _rows(first, depth + 1)
    if inner is not None and not inner[0].single:
        window = _moved(inner[0], rows, node)
        column = rest[-1] if rest else None
        window = window if window is None or not rest else part_by_numbers(window, column, node)
        return (window, inner[1]) if window is not None else None
    if len(rest) > 1 or (rest and not isinstance(rest[0], int)):
        return None
    series, offset = _origin(node if not rest else first)
    at = offset if not rest else _later(offset, rows.args[0])
    return (Window(series, at, at, node.place), False) if at is not None else None


def _at_once(node: Node, first: Node) -> Window | None:
    """``series.unfold(0, size, 1)`` and ``sliding_window_view(series, size)``."""
    one = len(first.shape.dims) == 1 and not first.shape.open
    if node.op == "unfold":
        axis, step = node.get("dimension", 1), node.get("step", 3)
        size = node.get("size", 2)
        if not (axis == 0 or (axis == -1 and one)) or step != 1:
            return None
    else:
        size = node.options.get("window_shape", node.inputs[1] if len(node.inputs) > 1 else None)
        axis = node.options.get("axis", (*node.inputs, None, None)[2] if len(node.inputs) > 2 else None)
        if axis not in (None, 0):
            return None
    length = linear(size)
    series, offset = _origin(first)
    if length is None or offset is None:
        return None
    terms = tuple(sorted((*offset.terms, *length.terms)))
    place = first.place if first.op == "getitem" else node.place
    return Window(series, offset, Linear(terms, offset.constant + length.constant - 1), place)


def _by_turns(node: Node, held: Items) -> Window | None:
    """``stack([series[i : i + size] for i in range(count)])``: row ``i`` is what turn ``i`` cut."""
    axis = node.options.get("dim", node.options.get("axis", (*node.inputs, 0)[1] if len(node.inputs) > 1 else 0))
    window = window_of(node) if held.more and held.items and (axis == 0 or node.op != "stack") else None
    last = held.items[-1] if held.items else None
    if window is None or not isinstance(last, Node):
        return None
    index = last.inputs[1] if len(last.inputs) > 1 else None
    numbers = near(tuple(index.args) if isinstance(index, Obj) else index, 12)
    counters = {number(n): n for n in numbers if n.op == "counter" and number(n) in window.first.terms}
    if len(counters) != 1:
        return None
    ((key, counter),) = counters.items()
    if len(counter.inputs) not in (1, 2) or window.first.terms.count(key) != 1 or key not in window.last.terms:
        return None
    start = linear(counter.inputs[0]) if len(counter.inputs) == 2 else Linear((), 0)
    series, offset = _origin(window.series)
    if start is None or offset is None or counter.full.rpartition(".")[2] != "range":
        return None

    def by_row(at: Linear) -> Linear:
        terms = [*at.terms]
        terms.remove(key)
        return Linear(
            tuple(sorted((*terms, *start.terms, *offset.terms))), at.constant + start.constant + offset.constant
        )

    return Window(series, by_row(window.first), by_row(window.last), node.place)


def _origin(value: Node) -> tuple[Node, Linear | None]:
    """The series that was only scaled and cut off at its start, and the number of the element that comes first."""
    offset: Linear | None = Linear((ROW,), 0)
    for _ in range(DEEP):
        first = value.inputs[0] if value.inputs else None
        index = value.inputs[1] if value.op == "getitem" and len(value.inputs) > 1 else None
        if isinstance(index, Obj) and index.kind == "builtins.slice" and isinstance(first, Node):
            if index.args[2] not in (None, 1):
                return value, offset
            later = _later(offset, index.args[0])
            if later is None:
                return value, offset  # from somewhere on: its own start is what it is counted from
            value, offset = first, later
            continue
        data = [n for i in value.inputs for n in parts(i) if not statistic(n)]
        if value.op not in ELEMENTWISE or len(data) != 1:
            break
        value = data[0]
    return value, offset


def _later(offset: Linear | None, start: Value) -> Linear | None:
    by = Linear((), 0) if start is None else linear(start)
    if offset is None or by is None or (not by.terms and by.constant < 0):
        return None
    return Linear(tuple(sorted((*offset.terms, *by.terms))), offset.constant + by.constant)


def _moved(window: Window, rows: Obj, node: Node) -> Window | None:
    first, last = _later(window.first, rows.args[0]), _later(window.last, rows.args[0])
    if first is None or last is None:
        return None
    return Window(window.series, first, last, node.place if rows.args[0] is not None else window.place)


__all__ = ["target_in_the_row"]
