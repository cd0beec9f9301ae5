"""Where a value comes from: from an expression backwards through names, calls, loaders, datasets and attributes.

The trace is a search over (expression, part) pairs, breadth first, so that the nearest places come first. It follows
every branch and every call site; it knows nothing of time. Rules pick among the steps.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.scopes import ELEMENT, Binding, Path, Scope

MAX_STEPS = 1500
"""Places visited for one question; a script has some hundred."""

SAME = frozenset(
    [
        "tqdm",
        "list",
        "tuple",
        "iter",
        "sorted",
        "reversed",
        "set",
        "cycle",
        "chain",
        "islice",
        "prefetch",
        "trange",
        "Subset",
        "ConcatDataset",
        "BackgroundGenerator",
        "prepare",
        "deepcopy",
        "copy",
        "shuffle",
    ]
)
"""Calls whose elements are the elements of their first argument."""
TRANSPARENT = frozenset(
    [
        "permute",
        "transpose",
        "contiguous",
        "clone",
        "detach",
        "to",
        "cuda",
        "cpu",
        "unsqueeze",
        "squeeze",
        "view",
        "reshape",
        "flatten",
        "numpy",
        "item",
        "tolist",
        "copy",
        "astype",
        "float",
        "double",
        "half",
        "long",
        "int",
        "stack",
        "cat",
        "from_numpy",
        "as_tensor",
        "tensor",
        "asarray",
        "array",
        "stack",
        "concatenate",
    ]
)


@dataclass(eq=False, slots=True)
class Step:
    """One place on the way back. ``previous`` is the place nearer to where the question was asked."""

    node: ast.expr
    scope: Scope
    path: Path
    previous: Step | None
    depth: int

    @property
    def line(self) -> int:
        return self.node.lineno

    def chain(self) -> list[Step]:
        """From here to the expression that was asked about."""
        steps, at = [], self
        while True:
            steps.append(at)
            if at.previous is None:
                return steps
            at = at.previous


def back(project: Project, node: ast.expr, scope: Scope, path: Path = ()) -> Iterator[Step]:
    """All places that the value of ``node`` may come from, nearest first, ``node`` itself included."""
    queue = deque([Step(node, scope, path, None, 0)])
    seen: set[tuple[int, Path]] = set()
    while queue and len(seen) < MAX_STEPS:
        step = queue.popleft()
        key = (id(step.node), step.path)
        if key in seen:
            continue
        seen.add(key)
        yield step
        queue.extend(onward(project, step))


def onward(project: Project, step: Step) -> Iterator[Step]:
    """The places right behind ``step``, for traces that choose where to stop."""
    for value, where, part in _follow(project, step):
        if value is not None and len(part) < 8:
            yield Step(value, where, part, step, step.depth + 1)


Next = tuple[ast.expr | None, Scope, Path]


def _follow(project: Project, step: Step) -> Iterator[Next]:
    node, scope, path = step.node, step.scope, step.path
    match node:
        case ast.Name():
            for binding in project.lookup(node.id, scope):
                yield from _binding(project, binding, path)
        case ast.Attribute():
            bindings = project.bindings(node, scope)
            for binding in bindings:
                yield from _binding(project, binding, path)
            if not bindings:
                default = list(option_defaults(project, node, scope))
                yield from ((value, at, path) for value, at in default)
                if not default:
                    yield node.value, scope, ()
        case ast.Subscript():
            yield from _subscript(project, node, scope, path)
        case ast.Call():
            yield from _call(project, node, scope, path)
        case ast.Tuple() | ast.List() | ast.Set():
            first = path[0] if path else None
            if isinstance(first, int) and first < len(node.elts):
                yield node.elts[first], scope, path[1:]
            else:
                for item in node.elts:
                    yield item, scope, path[1:]
        case ast.Dict():
            wanted = path[0] if path and isinstance(path[0], str) and path[0] != ELEMENT else None
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    yield value, scope, path
                elif wanted is None or not isinstance(key, ast.Constant) or key.value == wanted:
                    yield value, scope, path[1:]
        case ast.DictComp():
            yield node.value, scope, path[1:]
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            yield node.elt, scope, path[1:]
        case ast.BinOp():
            yield node.left, scope, ()
            yield node.right, scope, ()
        case ast.IfExp():
            yield node.body, scope, path
            yield node.orelse, scope, path
        case ast.BoolOp():
            for item in node.values:
                yield item, scope, path
        case ast.UnaryOp():
            yield node.operand, scope, ()
        case ast.Starred() | ast.Await() | ast.NamedExpr():
            yield node.value, scope, path
        case ast.Compare():
            yield node.left, scope, ()


def _binding(project: Project, binding: Binding, path: Path) -> Iterator[Next]:
    if binding.kind == "param":
        for value, scope in project.arguments(binding):
            yield value, scope, path
        return
    if binding.value is None:
        return
    if binding.kind == "append":
        rest = path[1:] if path else ()
        yield binding.value, binding.scope, (*binding.path, *rest)
    else:
        yield binding.value, binding.scope, (*binding.path, *path)


def _subscript(project: Project, node: ast.Subscript, scope: Scope, path: Path) -> Iterator[Next]:
    key: int | str = ELEMENT
    if isinstance(node.slice, ast.Slice):
        yield node.value, scope, path
        return
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int | str):
        key = node.slice.value
    owner = project.class_of(node.value, scope)
    getter = project.find_method(owner, "__getitem__") if owner is not None else None
    if getter is not None:
        for value in getter.returns:
            yield value, getter, path
        return
    yield node.value, scope, (key, *path)


def _call(project: Project, node: ast.Call, scope: Scope, path: Path) -> Iterator[Next]:
    target = project.resolve(node.func, scope)
    if target is None and isinstance(node.func, ast.Name | ast.Attribute):
        owner = project.class_of(node.func, scope)
        if owner is not None:
            target = project.find_method(owner, "forward") or project.find_method(owner, "__call__")
    if target is not None and target.kind == "function":
        yield from results(target, path)
        return
    if target is not None:
        yield from _elements_of_object(project, target, path)
        for value in (*node.args, *(k.value for k in node.keywords)):
            if not path:
                yield value, scope, ()
        return
    yield from _library(project, node, scope, path)


def results(function: Scope, path: Path) -> Iterator[Next]:
    """What a function gives back, or yields where its elements are asked for."""
    if function.yields and path:
        for item in function.yields:
            if isinstance(item, ast.Starred):
                yield item.value, function, path
            else:
                yield item, function, path[1:]
    for value in function.returns:
        yield value, function, path


def _elements_of_object(project: Project, owner: Scope, path: Path) -> Iterator[Next]:
    """What iterating over or indexing an object of a class of the project gives."""
    if not path:
        return
    for name in ("__iter__", "__getitem__"):
        method = project.find_method(owner, name)
        if method is None:
            continue
        if method.yields:
            yield from results(method, path)
        elif name == "__getitem__":
            for value in method.returns:
                yield value, method, path[1:]
        else:
            for value in method.returns:
                yield value, method, path
        return


def _library(project: Project, node: ast.Call, scope: Scope, path: Path) -> Iterator[Next]:
    name = last_name(node.func)
    args = node.args
    keywords = {k.arg: k.value for k in node.keywords if k.arg}
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_module = receiver is not None and not project.bindings_of_values(receiver, scope)
    first = args[0] if args else None
    if name in ("DataLoader", "StatefulDataLoader", "MultiEpochsDataLoader"):
        dataset = keywords.get("dataset", first)
        collate = keywords.get("collate_fn")
        function = project.resolve(collate, scope) if collate is not None else None
        if isinstance(collate, ast.Lambda):
            yield collate.body, scope, path[1:]
        elif function is not None and function.kind == "function":
            for value in function.returns:
                yield value, function, path[1:]
        if dataset is not None:
            yield dataset, scope, (ELEMENT, *path[1:]) if path else ()
    elif name == "TensorDataset":
        index = path[1] if len(path) > 1 else None
        if isinstance(index, int) and index < len(args):
            yield args[index], scope, (ELEMENT, *path[2:])
        else:
            for value in args:
                yield value, scope, path[2:]
    elif name in ("random_split", "train_test_split"):
        if name == "train_test_split" and path and isinstance(path[0], int) and path[0] // 2 < len(args):
            yield args[path[0] // 2], scope, path[1:]
        elif first is not None:
            yield first, scope, path[1:]
    elif name == "enumerate" and first is not None:
        if len(path) > 1 and path[1] == 1:
            yield first, scope, (ELEMENT, *path[2:])
        elif not path:
            yield first, scope, ()
    elif name == "zip":
        if len(path) > 1 and isinstance(path[1], int):
            if path[1] < len(args):
                yield args[path[1]], scope, (path[0], *path[2:])
        else:
            for value in args:
                yield value, scope, (*path[:1], *path[2:])
    elif name == "next" and first is not None:
        yield first, scope, (ELEMENT, *path)
    elif name in ("items", "values", "get", "pop", "setdefault") and receiver is not None:
        if name == "items":
            yield receiver, scope, (ELEMENT, *path[2:])
        elif name == "values":
            yield receiver, scope, path
        else:
            key = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ELEMENT
            yield receiver, scope, (key, *path)
            for value in args[1:]:
                yield value, scope, path
    elif name in ("map", "filter") and receiver is not None and not is_module:
        function = project.resolve(first, scope) if first is not None else None
        if isinstance(first, ast.Lambda):
            yield first.body, scope, path[1:]
        elif function is not None:
            for result in function.returns:
                yield result, function, path[1:]
        yield receiver, scope, path
    elif name in SAME and first is not None:
        yield first, scope, path
    elif receiver is not None and not is_module:
        keep = path if name in TRANSPARENT else ()
        yield receiver, scope, keep
        if name not in TRANSPARENT:
            for value in args:
                yield value, scope, ()
    else:
        for value in (*args, *keywords.values()):
            yield value, scope, path if name in TRANSPARENT else ()


def option_defaults(project: Project, node: ast.Attribute, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Defaults of a command-line option that ``args.x`` stands for (argparse, click-like declarations)."""
    if "option defaults" not in project.memo:
        table: dict[str, list[tuple[ast.expr, Scope]]] = {}
        for call in project.calls("add_argument"):
            default = call.argument("default")
            if default is not None:
                for name in _destinations(call):
                    table.setdefault(name, []).append((default, call.scope))
        project.memo["option defaults"] = table
    yield from project.memo["option defaults"].get(node.attr, ())


def _destinations(call: Call) -> list[str]:
    """The names under which an option may be read."""
    destination = call.argument("dest")
    if isinstance(destination, ast.Constant) and destination.value is not None:
        return [str(destination.value)]
    names = [a.value for a in call.node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return list(dict.fromkeys(n.lstrip("-").replace("-", "_") for n in names))
