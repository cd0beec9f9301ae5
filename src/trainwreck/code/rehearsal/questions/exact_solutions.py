"""Equations that a network is to fulfil, beside the exact solution that the program knows: does this one fulfil them?

The exact solution (what the network is compared with after training) is put in the place of the network in the residual
of the equation, and its derivatives are worked out as differences. Where the residual is far from zero, and is zero
with one sign turned round, that sign is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, core, learns
from trainwreck.code.rehearsal.questions.terms import losses_of
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown

POINTS = 40
STEP = 1e-3
"""Of a difference: the error of a second one is about 1e-6 of the solution."""
FAR = 0.1
"""Of the largest term: what is left over where the equation is not fulfilled."""
NEAR = 1e-3
"""The same where it is."""
MOST_SIGNS = 12
WAY = 12
TABLE = 2


@dataclass(eq=False, slots=True)
class Call:
    """One call of the network: the numbers of a point, each by itself or as columns of one table."""

    event: Event
    columns: list[Node]
    table: Node | None
    width: int


def sign_of_residual(run: Rehearsing) -> Iterator[Answer]:
    """The exact solution does not fulfil the equation that the network learns, and does with one sign turned round."""
    residuals = list(_residuals(run))
    calls = [c for e in run.tape if residuals and (c := _call(e)) is not None]
    truths = list(_truths(run, calls)) if calls else []
    told: set[int] = set()
    for residual, event in residuals:
        inside = list(ancestors(residual))
        mine = next((c for c in calls for p in parts(c.event.result) if any(p is n for n in inside)), None)
        if mine is None or residual.place is None or id(residual.place[0]) in told:
            continue
        told.add(id(residual.place[0]))
        for call, truth in truths:
            if call.event.subject is not mine.event.subject or call.width != mine.width or call is mine:
                continue
            wrong = _wrong_sign(_Exact(mine, call, truth), residual)
            if wrong is not None and wrong.place is not None:
                text = "the exact solution that the network is compared with does not fulfil this equation: it would "
                text += "with the sign turned round here"
                yield Answer(wrong.place, text, tuple(p for p in (truth.place, event.place) if p is not None))
                return


def _residuals(run: Rehearsing) -> Iterator[tuple[Node, Event]]:
    """What is squared in a loss and made of derivatives of a network."""
    for event, found in losses_of(run):
        for term in found:
            node = term.node
            inner = node.inputs[0] if node.inputs and node.op in ("square", "pow", "mse_loss", "abs", "norm") else None
            zero = node.op != "mse_loss" or (len(node.inputs) > 1 and _zeros(node.inputs[1]))
            if isinstance(inner, Node) and zero and any(n.op == "grad" for n in near(inner, WAY * 4)):
                yield inner, event


def _zeros(value: Value) -> bool:
    return value == 0 if not isinstance(value, Node) else value.op in ("zeros", "zeros_like", "new_zeros")


def _call(event: Event) -> Call | None:
    """A call of one of the program's own networks, with its points."""
    if event.name != "forward" or not is_module(event.subject) or not isinstance(event.result, Node) or event.options:
        return None
    given = [a for a in event.args if isinstance(a, Node)]
    if not given or len(given) != len(event.args):
        return None
    if len(given) > 1:
        return Call(event, given, None, len(given))
    whole = given[0]
    held = whole.inputs[0] if whole.op in JOINS and whole.inputs else None
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
    columns = [i for i in items if isinstance(i, Node)]
    if len(columns) > 1 and len(columns) == len(items) and not (isinstance(held, Items) and held.more):
        return Call(event, columns, whole, len(columns))
    dims = whole.shape.dims
    width = dims[-1] if not whole.shape.open and len(dims) == TABLE else 1
    return Call(event, [], whole, width) if isinstance(width, int) else None


def _truths(run: Rehearsing, calls: list[Call]) -> Iterator[tuple[Call, Node]]:
    """What the answer of a network is compared with that was computed from the very points it was asked for."""
    by_result: dict[int, Call] = {}
    for each in calls:  # the outermost module of several that give the same comes first
        for part in parts(each.event.result):
            by_result.setdefault(id(part), each)
    for node in run.nodes:
        if node.op not in ("sub", "mse_loss", "l1_loss") or len(node.inputs) < TABLE:
            continue
        for one, other in (node.inputs[:2], node.inputs[1::-1]):
            if not isinstance(one, Node) or not isinstance(other, Node) or learns(other):
                continue
            call = next((by_result[id(n)] for n in (one, *core(one)) if id(n) in by_result), None)
            call = call or next((by_result[id(n)] for n in near(one, 4) if id(n) in by_result), None)
            if call is None:
                continue
            behind = {id(n) for n in ancestors(other)}
            wanted = call.columns or ([call.table] if call.table is not None else [])
            if all(id(n) in behind for n in wanted):
                yield call, other


class _Exact:
    """The residual at points of ours, with the exact solution for the network."""

    def __init__(self, mine: Call, call: Call, truth: Node) -> None:
        self.mine, self.call, self.truth = mine, call, truth
        self.turned: dict[int, bool] = {}
        self.np = Bench().np
        random = self.np.random.default_rng(0)
        self.points = [random.uniform(0.2, 0.8, POINTS) for _ in range(mine.width)]

    def _given(self, call: Call, points: list[Array]) -> Bench:
        bench = Bench()
        for node, point in zip(call.columns, points, strict=True) if call.columns else ():
            bench.set(node, _as(node, point))
        if call.table is not None and not call.columns:
            bench.set(call.table, self.np.stack(points, 1) if call.width > 1 else _as(call.table, points[0]))
        return bench

    def solution(self, points: list[Array]) -> Array:
        found = self._given(self.call, points).work(self.truth)
        if found.size != POINTS:
            raise Unknown
        return found.reshape(-1)

    def work(self, node: Node, points: list[Array]) -> Array:
        bench = self._given(self.mine, points)
        given = (*self.mine.columns, *((self.mine.table,) if self.mine.table is not None else ()))
        for part in parts(self.mine.event.result):
            like = next((g for g in given if not g.shape.open), part) if part.shape.open else part
            column = part.shape.open and len(like.shape.dims) == TABLE  # as a last layer gives it
            bench.set(part, self.solution(points).reshape(-1, 1) if column else _as(part, self.solution(points)))
        bench.turned = self.turned
        bench.leaf = lambda leaf: self._derivative(leaf, points)
        return bench.work(node)

    def _derivative(self, node: Node, points: list[Array]) -> Array | None:
        if node.op != "grad" or len(node.inputs) < TABLE:
            return None
        out, by = node.inputs[:2]
        while isinstance(out, Node) and out.op == "sum" and len(out.inputs) == 1 and not out.options:
            out = out.inputs[0]
        if isinstance(out, Items | tuple):
            out = next(iter(parts(out)), None)
        which = next((k for k, c in enumerate(self.mine.columns) if c is by), None)
        if not isinstance(out, Node) or not isinstance(by, Node) or (which is None and by is not self.mine.table):
            return None
        slopes = []
        for k in range(self.mine.width) if which is None else (which,):
            ends = [[p + (STEP * s if j == k else 0.0) for j, p in enumerate(points)] for s in (1, -1)]
            above, below = (self.work(out, e) for e in ends)
            slopes.append(((above - below) / (2 * STEP)).reshape(-1))
        if any(s.size != POINTS for s in slopes):
            raise Unknown
        if which is None and self.mine.width > 1:
            return self.np.stack(slopes, 1)
        return _as(by, slopes[0])


def _as(node: Node, array: Array) -> Array:
    """As one column where the node is one."""
    dims = node.shape.dims
    return array.reshape(-1, 1) if len(dims) > 1 and dims[-1] == 1 else array


def _wrong_sign(exact: _Exact, residual: Node) -> Node | None:
    """The operation whose sign is to be turned round; None where the equation is fulfilled, or not by one sign."""
    try:
        whole = exact.work(residual, exact.points)
        if whole.size != POINTS:
            return None
        left = abs(whole).mean()
        signs = _signs(residual)[:MOST_SIGNS]
        size = max((abs(exact.work(n, exact.points)).mean() for n, _ in signs), default=0.0)
        if not size > 0 or left < FAR * size:
            return None
        for node, sums in signs:
            exact.turned = {id(node): True}
            if abs(exact.work(residual, exact.points)).mean() < NEAR * size:
                return sums
    except (Unknown, RecursionError):
        return None
    return None


def _signs(residual: Node) -> list[tuple[Node, Node]]:
    """The sums of a residual (first) and its terms, each with the sum that it stands in."""
    queue, found, seen = [(residual, residual)], [], set[int]()
    while queue:
        node, above = queue.pop(0)
        if id(node) in seen or isinstance(node.owner, Obj):
            continue
        seen.add(id(node))
        here = node if node.op in ("add", "sub") else above
        found.append((node, here))
        if node.op in ("add", "sub", "mul", "div", "neg", "squeeze", "unsqueeze", "view", "reshape"):
            queue += [(n, here) for i in node.inputs[:2] for n in parts(i)]
    return sorted(found, key=lambda pair: pair[0].op != "add")


__all__ = ["sign_of_residual"]
