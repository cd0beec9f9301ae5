"""Images and what is drawn on them: a flip, a turn or a crop of the one that the other does not follow."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import RANDOM, key_of
from trainwreck.code.rehearsal.questions.places import parting
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, given, learns, trained
from trainwreck.code.rehearsal.questions.views import data_inputs
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

DENSE = frozenset(
    """cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss
    huber_loss""".split()
)
FLIPS = {"fliplr": -1, "hflip": -1, "horizontal_flip": -1, "flipud": -2, "vflip": -2, "vertical_flip": -2}
TURNS = frozenset(["rot90", "roll"])
SWAPS = frozenset(["transpose", "swapaxes", "swapdims"])
TRANSPOSED = SWAPS | {"t", "mT"}
MOVED = TURNS | TRANSPOSED | FLIPS.keys() | {"flip", "getitem"}
PASSES = (
    STRUCTURE
    | JOINS
    | frozenset("either where batch setitem mul add sub div clamp clip long normalize element pad copy".split())
    | frozenset(["ascontiguousarray"])
)
WARPS = frozenset(["grid_sample", "affine_grid", "remap"])
SEEDS = frozenset(["seed", "manual_seed", "setstate", "set_state", "set_rng_state"])
PER_PIXEL = 3
"""Axes of a batch of masks: samples, rows, columns."""


class Move(Row):
    """A change of place that is decided anew for each sample: what, along which axes (from the right), by what draws,
    and under which tests."""

    kind: str
    axes: frozenset[int]
    draws: frozenset[int]
    node: Node
    tests: frozenset[object] = frozenset()
    amounts: tuple[object, ...] = ()
    """By how much along each of several axes, in order."""

    @property
    def left(self) -> frozenset[int]:
        """The axes from the left: of an image with channels last and of its mask these are the same."""
        return frozenset(a + len(self.node.shape.dims) for a in self.axes)


def apart(run: Rehearsing) -> Iterator[Answer]:
    """A random change of place of the input of a network that its dense target does not go through, or otherwise."""
    seeded = [e.subject for e in run.tape if e.name in SEEDS and e.turns and e.stack]
    if any(not isinstance(s, Obj) or _draws_with(run, s) for s in seeded):
        return  # each of both may be given the same draws
    for node in trained(run):
        if node.op not in DENSE:
            continue
        output, target = given(node, "input", 0), given(node, "target", 1)
        if not isinstance(output, Node) or not isinstance(target, Node) or target.grad or not _spatial(target):
            continue
        if learns(target) or _drawn(target):
            continue  # another network's answer to what it was shown, or drawn from points
        if moves(run, output) or any(n.op in WARPS for n in ancestors(output)):
            continue  # the output is moved back, or the network says where to: it learns to undo a move
        theirs = moves(run, target)
        for image in data_inputs(output):
            if not _spatial(image) or _same_data(image, target) or not _one_plane(image, target):
                continue
            mine = moves(run, image)
            wrong = next((m for m in mine if not _followed(m, theirs)), None)
            other = next((m for m in theirs if not _followed(m, mine)), None) if wrong is None else None
            told = wrong or other
            if told is not None and told.node.place is not None:
                moved, kept = ("input", "target") if wrong is not None else ("target", "input")
                text = f"this {told.kind} moves the {moved}, and the {kept} does not go along"
                place = _decides(told, theirs if wrong is not None else mine) or told.node.place
                yield Answer(place, text, (node.place,) if node.place is not None else ())
                return


def _draws_with(run: Rehearsing, generator: Obj) -> bool:
    """True for a generator that decides about flips, turns or ends of a cut, not only about the data themselves."""
    drawn = {
        id(n) for n in run.nodes if n.op in RANDOM and any(v is generator for v in (*n.inputs, *n.options.values()))
    }
    moved = (m for n in run.nodes if drawn and (n.maybe or n.op in MOVED) and (m := _move(n)) is not None)
    return any(m.draws & drawn or m.node.maybe for m in moved)


def _decides(move: Move, others: list[Move]) -> Place | None:
    """Of a function that moves both, each by a draw of its own: where it is called with the one. ``others``: the moves
    of the other one (this one may be moved several times by that function)."""
    here = move.node.place
    moved = [m.node for m in others if m.node.place is not None and m.node.stack]
    twin = next((n for n in moved if here is not None and n.place is not None and n.place[0] is here[0]), None)
    if twin is None or not move.node.stack:
        return None
    if [p[0] for p in twin.stack] == [p[0] for p in move.node.stack]:  # one call, which is made anew for each of both
        pairs = zip(move.node.stack, twin.stack, strict=True)
        return next((one for one, other in pairs if one is not other), None)
    return parting(move.node, twin)


def _spatial(node: Node) -> bool:
    return not node.shape.open and len(node.shape.dims) >= PER_PIXEL and node.shape.dims[-1] != 1


def _drawn(target: Node) -> bool:
    """True for a picture that is made of what is none (heat maps of points): a flip of the points is arithmetic."""
    size = target.shape.dims[-2:]
    roots = [n for n in ancestors(target) if not any(isinstance(i, Node) for i in n.inputs)]
    return bool(roots) and all(not r.shape.open and r.shape.dims[-2:] != size for r in roots)


def _one_plane(image: Node, target: Node) -> bool:
    """False where the target has other axes than the image, whatever its resolution: coordinates of points."""
    (*_, high, wide), sizes = target.shape.dims, image.shape.dims
    pairs = [sizes[-2:], sizes[-3:-1]] if len(sizes) > PER_PIXEL else [sizes[-2:]]
    known = [(h, w) for h, w in pairs if isinstance(h, int) and isinstance(w, int)]
    if not isinstance(high, int) or not isinstance(wide, int) or len(known) < len(pairs):
        return True
    return any(h * wide == w * high for h, w in known)


def _same_data(image: Node, target: Node) -> bool:
    """True where the target is made of the input itself (an autoencoder): it has gone along."""
    return any(n is image for n in ancestors(target, through=lambda n: n.op in PASSES))


def _followed(move: Move, others: list[Move]) -> bool:
    for other in others:
        same = (other.kind, other.draws, other.tests) == (move.kind, move.draws, move.tests)
        if same and (other.axes == move.axes or other.left == move.left) and not _exchanged(move, other):
            return True
    return False


def _exchanged(one: Move, other: Move) -> bool:
    """True for the same numbers on other axes: down by what the other one goes to the right."""
    mine, its = [repr(a) for a in one.amounts], [repr(a) for a in other.amounts]
    return mine != its and len(set(mine)) > 1 and sorted(mine) == sorted(its)


def moves(run: Rehearsing, value: Value) -> list[Move]:
    """The changes of place on the way to ``value`` that are decided for each sample."""
    found: list[Move] = []
    walked = list(ancestors(value, through=lambda n: n.op in PASSES))
    put_back = {id(taken) for n in walked if n.op == "setitem" and (taken := _same_place(n)) is not None}
    for node in walked:
        if id(node) in put_back:
            continue
        made = _move(node)
        if made is not None and (made.draws or node.maybe) and made.axes <= {-1, -2}:
            found.append(made._replace(tests=_tests(run, node)))
    return found


def _same_place(written: Node) -> Node | None:
    """What ``x[:, a:b, c:d] = y[i, a:b, c:d]`` and ``x[a:b, c:d] += 1`` take out: it is pasted where it was."""
    value = written.inputs[1] if len(written.inputs) > 2 else None
    for _ in range(4):
        if isinstance(value, Node) and value.op in ("add", "sub", "mul", "div", "clip", "clamp") and value.inputs:
            value = value.inputs[0]
    if not isinstance(value, Node) or value.op != "getitem" or len(value.inputs) < 2:
        return None
    there, here = _ends(written.inputs[2]), _ends(value.inputs[1])
    here = here[-len(there) :]  # which samples are pasted is no place
    same = bool(there) and len(there) == len(here) and all(_alike(a, b) for a, b in zip(there, here, strict=True))
    return value if same else None


def _ends(index: Value) -> list[Value]:
    """The ends of the slices of an index that do not take a whole axis."""
    items = index if isinstance(index, tuple) else (index,)
    slices = [i for i in items if isinstance(i, Obj) and i.kind == "builtins.slice"]
    return [a for s in slices if s.args[:2] != (None, None) for a in s.args[:2]]


def _alike(one: Value, other: Value, depth: int = 0) -> bool:
    """True for the same number, or one that is computed alike from the same numbers."""
    if isinstance(one, Node) and isinstance(other, Node) and one is not other:
        known = one.op == other.op and len(one.inputs) == len(other.inputs) > 0 and one.op not in RANDOM and depth < 6
        return known and all(_alike(a, b, depth + 1) for a, b in zip(one.inputs, other.inputs, strict=True))
    return one is other or (isinstance(one, int) and one == other)


def _tests(run: Rehearsing, node: Node) -> frozenset[object]:
    """The branches around an operation: a test that draws counts each time it is run, any other by its words."""
    found: set[object] = set()
    if node.place is None or not node.maybe:
        return frozenset()
    for above in run.project.ancestors(*node.place):
        if isinstance(above, ast.FunctionDef | ast.Lambda):
            break
        if isinstance(above, ast.If | ast.IfExp):
            calls = tuple(id(p[0]) for p in node.stack)
            if _calls(above.test):
                found.add(_draw(run, node, above) or (id(above), *calls))
            else:
                kept = _draw(run, node, above)  # also of a closure, which keeps what was drawn when it was made
                turned = isinstance(above.test, ast.UnaryOp)
                decided = (kept, turned) if kept else _decided(above.test, node.place[1], node.stack)
                found.add(decided or ast.unparse(above.test))
    return frozenset(found)


def _draw(run: Rehearsing, node: Node, above: ast.AST) -> frozenset[int]:
    """What the test of a branch drew when it was last run before ``node`` was computed in it."""
    tests = [
        t for t, at in run.memo.get("tested", ()) if at is above and isinstance(t, Node) and t.serial < node.serial
    ]
    return frozenset(id(n) for n in near(tests[-1], 40) if n.op in RANDOM) if tests else frozenset()


def _calls(test: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(test))


def _decided(test: ast.expr, scope: Scope, stack: tuple[Place, ...]) -> object:
    """Of a test of a name that a call decides: where, each time that this is run; None for any other."""
    name = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    bound = scope.bindings.get(name.id, ()) if isinstance(name, ast.Name) else ()
    if len(bound) != 1:
        return None
    kind, value = bound[0].kind, bound[0].value
    if kind == "assign" and value is not None and _calls(value):
        return id(value), type(test), *(id(p[0]) for p in stack)
    if kind == "param" and stack and isinstance(name, ast.Name) and isinstance(stack[-1][0], ast.Call):
        call = Call(stack[-1][0], stack[-1][1])
        given = call.argument(name.id, scope.params.index(name.id) if name.id in scope.params else None)
        if given is not None and _calls(given):
            return id(given), type(test), *(id(p[0]) for p in stack[:-1])
        if given is not None:
            inner = _decided(given, stack[-1][1], stack[:-1])
            return (inner, type(test)) if inner is not None else None
    return None


def _move(node: Node) -> Move | None:
    count = len(node.shape.dims)
    if node.shape.open or count < 2 or not node.inputs:
        return None
    rest = [*node.inputs[1:], *node.options.values()]
    draws = frozenset(id(n) for r in rest for n in ancestors(r) if n.op in RANDOM)
    if node.op == "flip" or node.op in FLIPS:
        axes = _numbers(rest, count) if node.op == "flip" else frozenset([FLIPS[node.op]])
        return Move("flip", axes, draws, node) if axes else None
    if node.op in TRANSPOSED:
        axes = _numbers(rest, count) if node.op in SWAPS else frozenset([-1, -2])
        return Move("transposition", axes, draws, node) if len(axes) == 2 else None
    if node.op in TURNS:
        by = node.options.get("shift", node.options.get("shifts", rest[0] if rest else None))
        listed = by if isinstance(by, tuple) else tuple(by.items) if isinstance(by, Items) else ()
        kind, amounts = "turn" if node.op == "rot90" else "shift", tuple(key_of(a) for a in listed)
        return Move(kind, _axes_of(node, count), draws, node, amounts=amounts)
    if node.op == "getitem" and len(node.inputs) > 1:
        index = node.inputs[1] if isinstance(node.inputs[1], tuple) else (node.inputs[1],)
        return _cut(node, index)
    return None


def _cut(node: Node, index: tuple[Value, ...]) -> Move | None:
    """A flip by ``[::-1]``, or a crop with random ends."""
    slices = [i for i in index if isinstance(i, Obj) and i.kind == "builtins.slice"]
    turned = [n for n, i in enumerate(index) if i in slices and (*i.args, None, None, None)[2] == -1]
    count, base = len(node.shape.dims), node.inputs[0]
    if turned and isinstance(base, Node) and not base.shape.open:
        first = 0 if Ellipsis not in index[: turned[0]] else count - len(index)
        return Move("flip", frozenset(first + t - count for t in turned), frozenset(), node)
    ends = [a for s in slices for a in s.args[:2] if isinstance(a, Node)]
    draws = frozenset(id(n) for e in ends for n in near(e, 40) if n.op in RANDOM)
    amounts = tuple(key_of(s.args[0]) for s in slices if s.args[:2] != (None, None))
    return Move("crop", frozenset(), draws, node, amounts=amounts) if draws and len(slices) > 1 else None


def _axes_of(node: Node, count: int) -> frozenset[int]:
    named = [node.options[k] for k in ("dims", "axes", "axis", "dim", "k") if k in node.options and k != "k"]
    return _numbers(named or list(node.inputs[2:]), count)


def _numbers(values: list[Value], count: int) -> frozenset[int]:
    """Axes counted from the right."""
    found: set[int] = set()
    for value in values:
        for item in value if isinstance(value, tuple) else getattr(value, "items", [value]):
            if isinstance(item, int) and not isinstance(item, bool):
                found.add(item if item < 0 else item - count)
    return frozenset(found)
