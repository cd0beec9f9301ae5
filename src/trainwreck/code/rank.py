"""How many dimensions a value has, as far as it can be told from the code; None where it can't."""

from __future__ import annotations

import ast

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.scopes import Binding, Path, Scope

MAX_DEPTH = 60
NUMBERS = ("np", "numpy", "math", "torch")
FILLED = frozenset(["zeros", "ones", "empty", "full", "rand", "randn"])
DRAWN = frozenset(
    ["normal", "uniform", "integers", "randint", "random", "gamma", "poisson", "standard_normal", "binomial", "choice"]
)
SAME = frozenset(
    [
        "astype",
        "float",
        "double",
        "half",
        "long",
        "int",
        "to",
        "cuda",
        "cpu",
        "clone",
        "detach",
        "contiguous",
        "copy",
        "numpy",
        "clip",
        "clamp",
        "abs",
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tanh",
        "round",
        "pow",
        "requires_grad_",
        "from_numpy",
        "tensor",
        "as_tensor",
        "asarray",
        "array",
        "sort",
        "cumsum",
        "digitize",
        "log1p",
        "where",
    ]
)
"""Calls that keep the number of dimensions of what they are called on, or of their first argument."""
ONE = frozenset(["linspace", "arange", "randperm", "permutation", "flatten", "ravel", "argsort"])
REDUCING = frozenset(
    ["mean", "sum", "max", "min", "std", "var", "argmax", "argmin", "item", "norm", "prod", "any", "all"]
)


def rank(project: Project, node: ast.expr, scope: Scope, path: Path = (), depth: int = 0) -> int | None:
    """The number of dimensions of ``node`` (of its part ``path``): 0 for a plain number."""
    known: dict[tuple[ast.expr, Path], int | None] = project.memo.setdefault("rank", {})
    key = (node, path)
    if depth > MAX_DEPTH or key in known:
        return known.get(key)
    known[key] = None
    known[key] = _rank(project, node, scope, path, depth)
    return known[key]


def _rank(project: Project, node: ast.expr, scope: Scope, path: Path, depth: int) -> int | None:
    match node:
        case ast.Constant() if isinstance(node.value, int | float):
            return 0
        case ast.Name() | ast.Attribute():
            if isinstance(node, ast.Attribute) and node.attr in ("pi", "e", "tau") and written(node.value) in NUMBERS:
                return 0
            if isinstance(node, ast.Attribute) and node.attr == "T":
                return rank(project, node.value, scope, path, depth + 1)
            return _of_bindings(project, project.bindings(node, scope), path, depth)
        case ast.BinOp():
            sides = [rank(project, s, scope, (), depth + 1) for s in (node.left, node.right)]
            known = [s for s in sides if s is not None]
            return max(known) if len(known) == 2 and not isinstance(node.op, ast.MatMult) else None
        case ast.UnaryOp():
            return rank(project, node.operand, scope, path, depth + 1)
        case ast.IfExp():
            one = rank(project, node.body, scope, path, depth + 1)
            return one if one == rank(project, node.orelse, scope, path, depth + 1) else None
        case ast.Subscript():
            return _of_subscript(project, node, scope, path, depth)
        case ast.Tuple() | ast.List():
            if path and isinstance(path[0], int) and path[0] < len(node.elts):
                return rank(project, node.elts[path[0]], scope, path[1:], depth + 1)
            inner = {rank(project, e, scope, (), depth + 1) for e in node.elts}
            only = inner.pop() if len(inner) == 1 else None
            return only + 1 if only is not None and isinstance(node, ast.List) else None
        case ast.ListComp():
            only = rank(project, node.elt, scope, (), depth + 1)
            return only + 1 if only is not None else None
        case ast.Call():
            return _of_call(project, node, scope, path, depth)
    return None


def _of_bindings(project: Project, bindings: list[Binding], path: Path, depth: int) -> int | None:
    """The rank that all bindings agree on."""
    found: set[int | None] = set()
    for binding in bindings:
        if binding.kind == "param":
            for value, scope in project.arguments(binding):
                found.add(rank(project, value, scope, path, depth + 1))
        elif binding.kind == "assign" and binding.value is not None:
            found.add(rank(project, binding.value, binding.scope, (*binding.path, *path), depth + 1))
        elif binding.kind == "loop" and binding.value is not None:
            found.add(_element(project, binding.value, binding.scope, (*binding.path[1:], *path), depth + 1))
        elif binding.kind != "append":
            return None
    return found.pop() if len(found) == 1 else None


def _element(project: Project, node: ast.expr, scope: Scope, path: Path, depth: int) -> int | None:
    """Rank of (a part of) one element of a loop over ``node``: for a loader, with its batch dimension."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(node, ast.Call) and last_name(node.func) in ("tqdm", "list", "iter") and node.args:
        return _element(project, node.args[0], scope, path, depth + 1)
    if isinstance(node, ast.Call) and last_name(node.func) == "enumerate" and node.args:
        return _element(project, node.args[0], scope, path[1:], depth + 1) if path[:1] == (1,) else None
    if isinstance(node, ast.Call) and last_name(node.func) == "range":
        return 0
    loaders = [c for c in constructors(project, node, scope) if c.name == "DataLoader"]
    found = {_batch(project, c, path, depth + 1) for c in loaders if c.argument("collate_fn") is None}
    return found.pop() if len(found) == 1 and len(loaders) >= 1 else None


def _batch(project: Project, loader: Call, path: Path, depth: int) -> int | None:
    dataset = loader.argument("dataset", 0)
    if dataset is None or not path:
        return None
    owner = project.class_of(dataset, loader.scope)
    if owner is not None:
        getter = project.find_method(owner, "__getitem__")
        if getter is None:
            return None
        ranks = {rank(project, v, getter, path, depth + 1) for v in getter.returns if v is not None}
        only = ranks.pop() if len(ranks) == 1 else None
        return only + 1 if only is not None else None
    for made in constructors(project, dataset, loader.scope):
        if made.name == "TensorDataset" and isinstance(path[0], int) and path[0] < len(made.node.args):
            return rank(project, made.node.args[path[0]], made.scope, path[1:], depth + 1)
    return None


def _of_subscript(project: Project, node: ast.Subscript, scope: Scope, path: Path, depth: int) -> int | None:
    base = rank(project, node.value, scope, (), depth + 1)
    if base is None:
        return None
    for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
        if isinstance(part, ast.Slice):
            continue
        if isinstance(part, ast.Constant):
            base += 1 if part.value is None else 0 if part.value is Ellipsis else -1
        elif isinstance(part, ast.Name | ast.BinOp | ast.Attribute | ast.UnaryOp):
            inner = rank(project, part, scope, (), depth + 1)
            if inner is None and not _index(project, part, scope):
                return None
            base += -1 if not inner else inner - 1
        else:
            return None
    return base if base >= 0 else None


def _index(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for the index of ``__getitem__`` and sums with it."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return scope.name == "__getitem__" and any(n.id in scope.params[1:] for n in names)


def _of_call(project: Project, node: ast.Call, scope: Scope, path: Path, depth: int) -> int | None:
    target = project.resolve(node.func, scope)
    if target is not None:
        if target.kind != "function":
            return None
        found = {rank(project, v, target, path, depth + 1) for v in target.returns if v is not None}
        return found.pop() if len(found) == 1 else None
    name, call = last_name(node.func), Call(node, scope)
    receiver = call.receiver
    own = receiver is not None and project.bindings_of_values(receiver, scope)
    subject = receiver if own else (node.args[0] if node.args else None)
    if name in ("float", "int", "len") and not own:
        return 0
    if name in FILLED or (name in DRAWN and own) or name == "randint":
        return _sized(project, call, name, depth)
    if name in ONE:
        return 1
    if subject is None or path:
        return None
    if name in SAME:
        return rank(project, subject, scope, (), depth + 1)
    if name in REDUCING and not call.node.keywords and len(node.args) == (0 if own else 1):
        return 0
    if name in ("reshape", "view") and own:
        sizes = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.Tuple) else node.args
        return None if any(isinstance(s, ast.Starred) for s in sizes) else len(sizes)
    if (name in ("unsqueeze", "stack", "squeeze") and name != "squeeze") or (name == "squeeze" and node.args):
        base = rank(project, subject, scope, (), depth + 1)
        return None if base is None or name == "squeeze" else base + 1
    return None


def _sized(project: Project, call: Call, name: str, depth: int) -> int | None:
    size = call.argument("size") or call.argument("shape")
    if size is None and name in FILLED:
        sizes = call.node.args[:1] if name == "full" or len(call.node.args) == 1 else call.node.args
        if name in ("rand", "randn") or "torch" in project.called(call):
            sizes = call.node.args[:1] if name == "full" else call.node.args
        if len(sizes) > 1:
            return len(sizes)
        size = sizes[0] if sizes else None
    if size is None:
        places = {"normal": 2, "uniform": 2, "integers": 2, "randint": 2, "gamma": 2, "random": 0, "standard_normal": 0}
        place = places.get(name)
        size = call.node.args[place] if place is not None and place < len(call.node.args) else None
        if size is None:
            spread = [rank(project, a, call.scope, (), depth + 1) for a in call.node.args[:2]]
            return (
                max(s for s in spread if s is not None)
                if spread and None not in spread
                else (0 if not spread else None)
            )
    if isinstance(size, ast.Tuple):
        return len(size.elts)
    if isinstance(size, ast.Constant | ast.Name | ast.Attribute | ast.Call | ast.BinOp) and "shape" not in written(
        size
    ):
        return 1
    return None
