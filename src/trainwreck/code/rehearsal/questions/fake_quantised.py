"""Fake quantisation: is what goes on near to what was rounded, and does the scale follow what is seen in training?"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Class, Function, Node, Obj, Place
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown

ROUNDS = frozenset(["round", "round_", "floor"])
CUTS = frozenset(["detach", "detach_", "data"])
FINE = 7
"""A clamp up to this number and further leaves at least four bits."""
APART = 0.3
"""Share of a value that four bits or more never lose on average (a uniform grid over a normal: below a tenth)."""
SIZE = 64
WHOLE = frozenset(["fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"])
"""Torch's own fake quantisation: of a value, by a scale and a zero point."""
MOVED = frozenset(
    "lerp copy fill minimum maximum max min amax amin aminmax quantile mean std where cat stack setitem".split()
)
"""What follows the data, or puts together what did."""


def _passes(run: Rehearsing) -> Iterator[tuple[Node, Node, Node]]:
    """``x + (y - x).detach()`` of a rounded ``y``: the sum, ``x`` and ``y``."""
    for node in trained(run):
        if node.op != "add" or len(node.inputs) < 2 or node.place is None:
            continue
        for plain, cut in (node.inputs[:2], node.inputs[1::-1]):
            if not isinstance(plain, Node) or not isinstance(cut, Node) or cut.op not in CUTS or not cut.inputs:
                continue
            inner = cut.inputs[0]
            sides = inner.inputs[:2] if isinstance(inner, Node) and inner.op == "sub" and len(inner.inputs) > 1 else ()
            if len(sides) == 2 and sides[1] is plain and isinstance(sides[0], Node) and _rounded(sides[0], plain):
                yield node, plain, sides[0]


def _rounded(value: Node, plain: Node) -> bool:
    behind = list(ancestors(value, through=lambda n: n is not plain))
    clamps = [n for n in behind if n.op in ("clamp", "clip")]
    highs = [h for n in clamps if isinstance(h := n.get("max", 2), int | float)]
    return any(n.op in ROUNDS for n in behind) and bool(highs) and max(highs) >= FINE


def far_off(run: Rehearsing) -> Iterator[Answer]:
    """What is rounded to many levels and scaled back is not near to what it was."""
    told: set[int] = set()
    for node, plain, rounded in _passes(run):
        if node.place is None or id(node.place[0]) in told:
            continue
        error = _error(plain, rounded)
        if error is not None and error > APART:
            told.add(id(node.place[0]))
            place = _scaling(rounded, plain) or node.place
            text = f"rounding and scaling back loses {min(error, 99):.0%} of the values here: the scale is not undone"
            yield Answer(place, text, (node.place,))
            return


def _error(plain: Node, rounded: Node) -> float | None:
    try:
        bench = Bench(leaf=lambda node: None)
        values = bench.random.normal(size=(SIZE, SIZE))
        bench.set(plain, values)
        for node in ancestors(rounded, through=lambda n: n is not plain):
            if node.op in ("buffer", "lerp_", "lerp", "setitem", "copy_", "fill_") or _state(node):
                if node is not plain and not node.shape.open and not node.shape.dims:
                    bench.set(node, bench.np.abs(values).max())
            elif node.op == "param" and node is not plain and not node.shape.open and not node.shape.dims:
                return None
        for node in ancestors(rounded, through=lambda n: n is not plain):
            inner = node.inputs[0] if node.op in CUTS and node.inputs else None
            if isinstance(inner, Node) and inner is plain:
                bench.set(node, values)
        made: Array = bench.work(rounded)
        if getattr(made, "shape", ()) != values.shape:
            return None
        return float(bench.np.abs(made - values).mean() / bench.np.abs(values).mean())
    except (Unknown, ValueError, TypeError):
        return None


def _state(node: Node) -> bool:
    return bool(node.options.get("inplace")) and not node.shape.dims


def _scaling(rounded: Node, plain: Node) -> Place | None:
    """Where the scale is multiplied in again, or left out: the last operation."""
    return rounded.place


def _scaled(run: Rehearsing) -> Iterator[tuple[Node, Node, list[Node]]]:
    """Each fake quantisation, of what, and what stands behind its scale: by hand, in a function with a gradient of its
    own that rounds, or torch's own."""
    for node, plain, rounded in _passes(run):
        yield node, plain, list(ancestors(rounded, through=_but(plain)))
    for node in trained(run):
        given = node.inputs
        if node.op == "apply" and given and isinstance(given[0], Class) and _rounds(given[0]):
            given = given[1:]
        elif node.op not in WHOLE:
            continue
        if node.place is not None and given and isinstance(given[0], Node):
            plain = given[0]
            yield node, plain, [n for i in given[1:] if isinstance(i, Node) for n in ancestors(i, through=_but(plain))]


def _rounds(cls: Class) -> bool:
    """True for a function with its own gradient whose forward rounds."""
    forward = cls.find("forward")
    if not isinstance(forward, Function) or not any(b.rpartition(".")[2] == "Function" for b in cls.external()):
        return False
    calls = (n.func for n in ast.walk(forward.node) if isinstance(n, ast.Call))
    return any((f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")) in ROUNDS for f in calls)


def _but(plain: Node) -> Callable[[Node], bool]:
    """Not behind the value that is rounded, now or in an earlier turn of the loop."""
    return lambda node: not _same(node, plain)


def _same(node: Node, plain: Node) -> bool:
    return node is plain or (node.op == plain.op and node.place is not None and node.place == plain.place)


def never_observed(run: Rehearsing) -> Iterator[Answer]:
    """A number that the scale is made of is kept as it was set up: what should follow the data has no effect."""
    held_at: dict[tuple[int | str, ...], list[Node | None]] = {}
    places: dict[tuple[int | str, ...], Place] = {}
    for node, plain, behind in _scaled(run):
        for name, held in _states(plain, behind).items() if node.place is not None else ():
            assert node.place is not None
            way: tuple[int | str, ...] = (*(id(at[0]) for at in (*node.stack, node.place)), name)
            held_at.setdefault(way, []).append(held)
            places[way] = node.place
    for key, found in held_at.items():
        held = found[0]
        if held is None or None in found:
            continue
        last = held.name.rpartition(".")[2]
        owner = next((o for o in run.objects if o.cls is not None and last in o.attributes), None)
        place = _idle(owner, held.name, run) if owner is not None else None
        if place is not None:
            text = f"{held.name} keeps the number that it was set up with: nothing that is seen in training moves it"
            yield Answer(place, text, (places[key],))
            return


def _states(plain: Node, behind: list[Node]) -> dict[str, Node | None]:
    """The numbers in buffers that a scale is made of, by name: the buffer as it was set up, None for one that moved.

    Of a range only one end may stand still."""
    moves = [n for n in behind if n.options.get("inplace") or (n.op in MOVED and not _of_buffers(n, plain))]
    moved = [n for m in moves for n in ancestors(m, through=_but(plain)) if n.op == "buffer"]
    found: dict[str, Node | None] = {
        n.name: n for n in behind if n.op == "buffer" and all(d == 1 for d in n.shape.dims)
    }
    return {**found, **{n.name: None for n in moved}}


def _of_buffers(node: Node, plain: Node) -> bool:
    """True for what is put together of buffers alone, as they are or as they moved: ``maximum(-low, high)``."""

    def end(n: Node) -> bool:
        return _same(n, plain) or n.op == "buffer" or bool(n.options.get("inplace"))

    behind = ancestors(node, through=lambda n: not end(n))
    leaves = [n for n in behind if end(n) or not any(True for i in n.inputs for _ in parts(i))]
    return all(end(n) and not _same(n, plain) for n in leaves)


def _idle(owner: Obj, name: str, run: Rehearsing) -> Place | None:
    """The statement of the owner's forward that was to move it: a result that is dropped, or a branch not taken."""
    name = name.rpartition(".")[2]
    forward = owner.cls.find("forward") if owner.cls is not None else None
    if not isinstance(forward, Function):
        return None
    calls = [n.func for n in ast.walk(forward.node) if isinstance(n, ast.Call)]
    called = [f.attr for f in calls if isinstance(f, ast.Attribute) and ast.unparse(f.value) == "self"]
    helpers = [owner.cls.find(c) for c in called] if owner.cls is not None else []
    functions = [forward, *(h for h in helpers if isinstance(h, Function))]
    return next((p for f in functions if (p := _idle_in(f, owner, name, run)) is not None), None)


def _idle_in(function: Function, owner: Obj, name: str, run: Rehearsing) -> Place | None:
    for statement in ast.walk(function.node):
        if not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign):
            continue
        call = statement.value
        target = isinstance(statement, ast.Assign) and any(_names(n, name) for n in ast.walk(statement.targets[0]))
        if not target and not (
            isinstance(statement, ast.Expr) and isinstance(call, ast.Call) and _works_on(call, name)
        ):
            continue
        above = next((a for a in run.project.ancestors(statement, function.scope) if not isinstance(a, ast.With)), None)
        off = isinstance(above, ast.If) and (_inplace(call) or target)
        if not off and (_inplace(call) or target):
            continue
        flag = _flag(owner, above.test) if isinstance(above, ast.If) and off else None
        if flag is not None:
            return flag
        return (above.test, function.scope) if isinstance(above, ast.If) and off else (statement, function.scope)
    return None


def _works_on(call: ast.Call, name: str) -> bool:
    """True for a method of the attribute, and of what is made of it, or a function that takes it first."""
    at: ast.expr = call
    while not _names(at, name):
        if isinstance(at, ast.Call):
            first = at.args[0] if at.args else None
            if first is not None and _names(first, name):
                return True
            at = at.func
        elif isinstance(at, ast.Attribute | ast.Subscript):
            at = at.value
        else:
            return False
    return True


def _names(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and ast.unparse(node.value) == "self"


def _flag(owner: Obj, test: ast.expr) -> Place | None:
    """Where a flag of the object that the test asks for is set to false as it is made."""
    init = owner.cls.find("__init__") if owner.cls is not None else None
    names = {ast.unparse(n) for n in ast.walk(test) if isinstance(n, ast.Attribute)} - {"self.training"}
    for statement in ast.walk(init.node) if isinstance(init, Function) else ():
        named = isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in names
        value = statement.value if isinstance(statement, ast.Assign) and named else None
        if isinstance(value, ast.Constant) and value.value is False and isinstance(init, Function):
            return statement, init.scope
    return None


def _inplace(call: ast.expr) -> bool:
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")


__all__ = ["far_off", "never_observed"]
