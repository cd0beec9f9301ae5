"""Flags of episodes: which truths of the program say that one is over, and in which sense a value holds them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value, candidates
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

EMPTY = frozenset(["zeros", "zeros_like", "empty", "empty_like", "new_zeros", "full", "ones", "ones_like"])
CARRIES = STRUCTURE | JOINS | frozenset(
    """float_value bool int array asarray as_tensor tensor FloatTensor BoolTensor stack element float32 zip list tuple
    from_numpy concatenate scale copy reshape mean any all""".split()
)  # fmt: skip
"""What hands a flag on as it is."""
TESTS = frozenset(["gt", "lt", "ge", "le", "eq", "ne", "in", "and", "or", "is", "logical_and", "logical_or", "part"])
LIMIT = pattern(r"trunc|time_?(out|limit|up)|out_of_time|horizon|max_(steps|t)\b|limit", re.IGNORECASE)
NEGATIONS = frozenset(["not", "invert", "logical_not"])
MAX_VISITS = 200


class Flag(Row):
    """A truth of the program behind a value; ``turned``: the value is its opposite (``1 - done``)."""

    source: Node
    turned: bool
    via: Node | None
    """Where it was turned last, seen from the value."""


def flags(value: Value) -> list[Flag]:
    """The truths that a value of zeros and ones was made of, by selecting, moving, converting and turning alone."""
    found: list[Flag] = []
    seen: set[tuple[int, bool]] = set()
    queue: list[tuple[Node, bool, Node | None]] = [(n, False, None) for n in parts(value)]
    while queue and len(seen) < MAX_VISITS:
        node, turned, via = queue.pop(0)
        if (id(node), turned) in seen or node.op in EMPTY:
            continue
        seen.add((id(node), turned))
        inner, turns = _inside(node)
        if inner is None:
            if _is_truth(node):
                found.append(Flag(node, turned, via))
            continue
        for item in inner:
            queue += [(n, turned != turns, via or (node if turns else None)) for n in parts(item)]
    return found


def _inside(node: Node) -> tuple[list[Value] | None, bool]:
    """What a value holds the truth of, and whether it is its opposite; None for a truth itself, or what is none."""
    inputs = node.inputs
    if node.op == "sub" and len(inputs) > 1 and number_of(inputs[0]) == 1.0:
        return [inputs[1]], True
    if node.op in NEGATIONS and inputs:
        return [inputs[0]], True
    if node.op in ("eq", "ne", "lt", "gt") and len(inputs) > 1 and number_of(inputs[1]) in (0.0, 0.5, 1.0):
        if flags(inputs[0]):
            return [inputs[0]], (node.op == "eq") == (number_of(inputs[1]) == 0.0) if node.op in ("eq", "ne") else (
                node.op == "lt"
            )
        return None, False
    if node.op == "either":
        known = candidates(node)
        return (
            (None, False) if all(isinstance(c, bool) for c in known) else ([c for c in known if c is not None], False)
        )
    if node.op == "setitem" and len(inputs) > 1:
        return [inputs[0], inputs[1]], False
    if node.op == "where" and len(inputs) > 2:
        ends = [number_of(i) for i in inputs[1:3]]
        if ends in ([0.0, 1.0], [1.0, 0.0]):
            return [inputs[0]], ends[0] == 0.0
        return None, False
    if node.op in CARRIES and inputs:
        first = inputs[0]
        return list(first) if isinstance(first, tuple) else list(first.items) if isinstance(first, Items) else [
            first
        ], (False)
    return None, False


def _is_truth(node: Node) -> bool:
    if node.op == "either":
        return True
    if node.op == "part":  # of what an environment returns
        return len(node.inputs) > 1 and node.inputs[1] in (2, 3) and _steps(node.inputs[0])
    return node.op in TESTS or node.op in ("bitwise_or", "bitwise_and")


def _steps(value: Value) -> bool:
    return isinstance(value, Node) and value.op in ("step", "call") and bool(value.inputs)


Key = tuple[object, ...]


def key_of(source: Node) -> Key:
    """Equal for the same truth in all turns of a loop."""
    if source.place is None:
        return (id(source),)
    return id(source.place[0]), source.op, source.inputs[1] if source.op == "part" and len(source.inputs) > 1 else None


def ends(run: Rehearsing) -> dict[Key, bool]:
    """The truths (by their keys) that decide about the end of an episode: True for those that are set at the end, False
    for those that are set as long as it goes on. Told by what the program does where they are set."""
    if "ends" not in run.memo:
        found: dict[Key, bool] = {}
        for value, node in run.memo.get("tested", ()):
            for flag in _deciding(value):
                side = _ending(node)
                if side is not None:
                    found[key_of(flag.source)] = side != flag.turned
        for node in run.nodes:
            if node.op == "setitem" and len(node.inputs) > 2 and _starts_anew(node):
                for flag in _deciding(node.inputs[2]):
                    found.setdefault(key_of(flag.source), not flag.turned)
            if node.op == "where" and len(node.inputs) > 2 and _resets(node.inputs[1]) and not _resets(node.inputs[2]):
                for flag in _deciding(node.inputs[0]):
                    found.setdefault(key_of(flag.source), not flag.turned)
        run.memo["ends"] = found
    known: dict[Key, bool] = run.memo["ends"]
    return known


def over(run: Rehearsing, flag: Flag) -> bool | None:
    """True where a value that holds this flag is set at the end of an episode, False where it is set as long as that
    goes on, None where it isn't known."""
    known = _said(ends(run), flag.source, 0)
    return None if known is None else known != flag.turned


def _said(known: dict[Key, bool], source: Node, depth: int) -> bool | None:
    if key_of(source) in known:
        return known[key_of(source)]
    if source.op not in ("or", "logical_or", "bitwise_or") or depth > 4:
        return None
    sides = [(f, _said(known, f.source, depth + 1)) for i in source.inputs[:2] for f in flags(i)]
    found = {said != f.turned for f, said in sides if said is not None}
    return True if found == {True} else None


def _deciding(value: Value) -> Iterator[Flag]:
    """The truths of a test: also each side of ``a or b``."""
    for flag in flags(value):
        yield flag
        if flag.source.op in ("or", "and", "logical_or", "bitwise_or", "logical_and"):
            for item in flag.source.inputs:
                for inner in flags(item):
                    yield Flag(inner.source, inner.turned != flag.turned, None)


def _ending(node: ast.AST) -> bool | None:
    """True where an episode is over if the test of a statement holds, False if it does not, None if it isn't clear."""
    if isinstance(node, ast.While):
        return False
    if isinstance(node, ast.IfExp):
        body, other = _ends_here([ast.Expr(node.body)]), _ends_here([ast.Expr(node.orelse)])
    elif isinstance(node, ast.If):
        body, other = _ends_here(node.body), _ends_here(node.orelse)
    else:
        return None
    return None if body == other else body


def _ends_here(body: list[ast.stmt]) -> bool:
    inner = [n for s in body for n in ast.walk(s)]
    return any(isinstance(s, ast.Break) for s in body) or any(isinstance(n, ast.Call) and _is_reset(n) for n in inner)


RESET = pattern(r"reset|restart|respawn|new_(episode|state|game)|initial|start_(state|episode|over)|begin|spawn")


def _is_reset(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return bool(RESET.search(name.lower()))


def _starts_anew(node: Node) -> bool:
    """True for ``self.x[over] = ...``, elements of an object's own state that are set anew where a truth holds."""
    at = node.place[0] if node.place is not None else None
    return isinstance(at, ast.Subscript) and isinstance(at.value, ast.Attribute | ast.Name) and any(
        f.source.place is not None and node.place is not None and f.source.place[1] is node.place[1]
        for f in flags(node.inputs[2])
    )  # fmt: skip


def _resets(value: Value) -> bool:
    return any(
        n.op in ("reset", "uniform", "rand", "randn", "normal", "random", "zeros", "zeros_like", "randint", "integers")
        for v in parts(value)
        for n in near(v, 6)
    )


def timed(node: Node) -> bool:
    """True for a limit of time: a count of steps that is compared with a number, or what the text calls so."""
    text = ast.unparse(node.place[0]) if node.place is not None and isinstance(node.place[0], ast.expr) else ""
    if node.op in ("or", "logical_or", "bitwise_or"):
        return all(timed(n) for i in node.inputs[:2] for n in parts(i))
    if node.op == "part":
        return len(node.inputs) > 1 and node.inputs[1] == 3
    if LIMIT.search(text):
        return True
    if node.op == "either":
        test = node.attributes.get("?test")
        return not isinstance(test, Node) or timed(test)
    return node.op in ("ge", "gt", "eq", "le", "lt") and any(_counted(i) for i in node.inputs[:2])


def _counted(value: Value) -> bool:
    """A number that the turns add one to."""
    for node in parts(value):
        if any(n.op == "counter" for n in near(node, 4)):
            return True
        if any(n.op == "add" and n.options.get("inplace") and 1 in n.inputs[1:2] for n in near(node, 6)):
            return True
    return False


__all__ = ["Flag", "ends", "flags", "key_of", "over", "timed"]
