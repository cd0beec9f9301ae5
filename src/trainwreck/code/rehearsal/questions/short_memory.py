"""Features that look back along a series (running means, sums, filters): worked out over the whole history and then
cut into windows for the training, and of one window alone where the network is judged."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import evaluated, moving, trained

LOOKS_BACK = frozenset(
    """convolve correlate cumsum cumprod cummax cummin lfilter sosfilt filtfilt savgol_filter rolling ewm expanding
    gaussian_filter1d uniform_filter1d convolve1d medfilt maximum_filter1d minimum_filter1d conv1d avg_pool1d""".split()
)
"""What makes each element of several before it."""
SERIES = {"lfilter": 2, "filtfilt": 2, "sosfilt": 1}
"""The place of the series among the arguments, where it isn't the first."""
TORCH = frozenset(["conv1d", "avg_pool1d"])
"""Those that give fewer elements than they get, unless something stands before them."""
KEEPS = frozenset(
    """astype float double to from_numpy tensor as_tensor array asarray numpy clone copy contiguous view reshape
    unsqueeze squeeze pad attribute values to_numpy cpu cuda part T transpose Series DataFrame""".split()
)
FAR = 20
CLOSE = 12
"""Values that one element of a running figure is put together from."""
MOST = 400
"""Values that are looked at behind one input."""


def short_memory(run: Rehearsing) -> Iterator[Answer]:
    """The same call gives the training its feature from the whole series, of which windows are cut afterwards, and the
    evaluation from a window that was cut before: there its first elements know nothing of what came earlier."""
    if not any(n.op in LOOKS_BACK or _carried(n) is not None for n in run.nodes):
        return
    given = [(node, *_features(node)) for _, node in trained(run)]
    taught = [(node, f) for node, *found in given for f in found]
    if not taught:
        return
    ids = {id(f) for _, f in taught}
    for event, node in evaluated(run):
        for feature in _features(node):
            if id(feature) in ids:
                continue
            base, cut = _source(feature)
            if base is None or cut is None or cut.place is None or _cut_after(node, feature):
                continue
            for learned, other in taught:
                same = feature.place is not None and other.place is not None and feature.place[0] is other.place[0]
                whole, before = _source(other)
                if same and whole is base and before is None and _cut_after(learned, other):
                    name = feature.op if feature.op != "setitem" else "this feature"
                    text = (
                        f"{name} looks back, and gets one window here; in the training it runs over the whole "
                        "series, which is cut into windows afterwards: the first elements differ"
                    )
                    yield Answer(cut.place, text, _proof(other, event.place))
                    return


def _proof(other: Node, judged: Place | None) -> tuple[Place, ...]:
    return tuple(p for p in (other.place, judged) if p is not None)


def _features(node: Node) -> list[Node]:
    """What looks back on the way of data, with the same number of elements as it gets."""
    found = []
    for at, inner in enumerate(ancestors(node)):
        if at > MOST or inner.op == "param":
            break
        if _carried(inner) is not None:
            found.append(inner)
            continue
        if inner.op not in LOOKS_BACK or inner.grad or "valid" in (*inner.inputs, *inner.options.values()):
            continue
        if inner.op not in TORCH or inner.options.get("padding") or _padded(inner):
            found.append(inner)
    return found


def _carried(node: Node) -> Node | None:
    """The series of ``out[i] = a * series[i] + (1 - a) * out[i - 1]``, each element of which hangs on the last."""
    if node.op != "setitem" or node.grad or len(node.inputs) < 3 or not isinstance(node.inputs[1], Node):
        return None
    taken = [n for n in near(node.inputs[1], CLOSE) if n.op == "getitem" and len(n.inputs) > 1]
    before = any(n.inputs[0] is node.inputs[0] and n.inputs[1] is not node.inputs[2] for n in taken)
    series = (n.inputs[0] for n in taken if n.inputs[1] is node.inputs[2] and n.inputs[0] is not node.inputs[0])
    return (
        next((s for s in series if isinstance(s, Node)), None) if before and isinstance(node.inputs[2], Node) else None
    )


def _padded(node: Node) -> bool:
    first = node.inputs[0] if node.inputs else None
    return isinstance(first, Node) and any(n.op == "pad" for n in near(first, 6))


def _source(feature: Node) -> tuple[Node | None, Node | None]:
    """The series that a feature is made of, and where a part of it was cut out that begins late."""
    place = SERIES.get(feature.op, 0)
    at: Value = feature.inputs[place] if len(feature.inputs) > place else None
    if feature.op == "setitem":
        at = _carried(feature)
    cut: Node | None = None
    for _ in range(FAR):
        if not isinstance(at, Node):
            return None, None
        if at.op == "getitem" and len(at.inputs) > 1:
            index = at.inputs[1][0] if isinstance(at.inputs[1], tuple) and at.inputs[1] else at.inputs[1]
            if isinstance(index, Obj) and index.kind == "builtins.slice":
                late = index.args[0]
                if late not in (None, 0) and isinstance(late, Node) and moving(late):
                    cut = at
                elif late not in (None, 0):
                    return None, None
            elif index is not None and index is not Ellipsis and not isinstance(index, str):
                return at, cut
        elif at.op not in KEEPS or not at.inputs or not isinstance(at.inputs[0], Node):
            return at, cut
        at = at.inputs[0]
    return None, None


def _cut_after(value: Node, feature: Node) -> bool:
    """True where what a feature holds is cut into windows later, or its first elements are left out."""
    for node in ancestors(value):
        if node.serial < feature.serial:
            continue
        if node.op in ("unfold", "sliding_window_view"):
            return True
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        for one in index if isinstance(index, tuple) else (index,):
            late = one.args[0] if isinstance(one, Obj) and one.kind == "builtins.slice" else None
            if late not in (None, 0) and any(n is feature for i in parts(node.inputs[0]) for n in ancestors(i)):
                return True
    return False


__all__ = ["short_memory"]
