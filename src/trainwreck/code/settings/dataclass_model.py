"""Options that are the fields of dataclasses: HfArgumentParser, TrlParser, tyro."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from trainwreck.catalogue import releases
from trainwreck.catalogue.releases import TABLES
from trainwreck.code.calls import Call, default_of, last_name, written
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.parsers import Library, Option, Parser, Takes, made, reached_modules
from trainwreck.code.settings.tree import UNKNOWN
from trainwreck.code.values import values

SCALARS = frozenset(["int", "float", "str", "bool"])
PARSING = frozenset(["parse_args_into_dataclasses", "parse_args_and_config"])


def find(project: Project, path: str) -> Parser | None:
    """The parser of a script that makes exactly one HfArgumentParser or TrlParser, or calls ``tyro.cli`` once."""
    reached = reached_modules(project, path)
    calls = [c for c in project.calls("HfArgumentParser", "TrlParser") if c.scope.module.path in reached]
    calls = [c for c in calls if c.scope.module.path == path] or calls
    if len(calls) == 1 and project.from_package(calls[0], "transformers", "trl"):
        return _hf(project, calls[0])
    clis = [c for c in project.calls("cli") if c.scope.module.path == path and project.called(c) == "tyro.cli"]
    return _tyro(project, clis[0]) if len(clis) == 1 else None


def _hf(project: Project, call: Call) -> Parser | None:
    given = call.argument("dataclass_types", 0)
    items: Sequence[ast.expr] = given.elts if isinstance(given, ast.Tuple | ast.List) else [given] if given else []
    if given is not None and not isinstance(given, ast.Tuple | ast.List | ast.Name | ast.Attribute):
        return None
    if isinstance(given, ast.Name) and project.resolve(given, call.scope) is None:
        bound = [b.value for b in project.lookup(given.id, call.scope) if b.kind == "assign"]
        if len(bound) == 1 and isinstance(bound[0], ast.Tuple | ast.List):
            items = bound[0].elts
    options: list[Option] = []
    libraries: list[Library] = []
    closed = bool(items) and not any(k.arg is None for k in call.node.keywords)
    for item in items:
        closed = _collect(project, item, call.scope, options, libraries, True) and closed
    kind = "trl" if call.name == "TrlParser" else "hf"
    parsing = [c for c in project.calls(*PARSING) if c.scope.module.path == call.scope.module.path]
    if len(parsing) != 1:
        closed = False
    for other in parsing:
        if any(k.arg in ("return_remaining_strings", "args", None) for k in other.node.keywords) or other.node.args:
            closed = False
        if any(k.arg == "fail_with_unknown_args" for k in other.node.keywords):
            closed = False
    if any(c.scope.module.path == call.scope.module.path for c in project.calls("add_argument", "parse_known_args")):
        closed = False
    return made("trl" if kind == "trl" else "hf", call.node, call.scope, options, closed, libraries)


def _collect(
    project: Project,
    item: ast.expr,
    scope: Scope,
    options: list[Option],
    libraries: list[Library],
    hf: bool,
) -> bool:
    """The fields of one class with those of its bases. False where a base is unknown."""
    owner = project.resolve(item, scope)
    if owner is None or owner.kind != "class":
        return _library(project, item, scope, libraries)
    whole = True
    for base in getattr(owner.node, "bases", ()):
        if written(base) not in ("object", "ABC"):
            whole = _collect(project, base, owner.parent or owner, options, libraries, hf) and whole
    own = list(fields(project, owner, hf))
    replaced = {o.dest for o in own}
    options[:] = [*(o for o in options if o.dest not in replaced), *own]
    return whole


def _library(project: Project, item: ast.expr, scope: Scope, libraries: list[Library]) -> bool:
    parts = project.dotted(item, scope).split(".")
    package = TABLES.get(parts[0])
    home = releases.table(package) if package is not None else None
    if home is None or len(parts) < 2 or home.signature(parts[-1]) is None:
        return False
    libraries.append(Library(home.package, parts[-1]))
    return True


def fields(project: Project, owner: Scope, hf: bool) -> Iterator[Option]:
    """The fields that a dataclass of the project declares itself."""
    for node in getattr(owner.node, "body", ()):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        kind = written(node.annotation)
        if kind.startswith(("ClassVar", "InitVar")):
            continue
        default, has_default, hidden = _default(project, node.value, owner)
        if hidden:
            continue
        name = node.target.id
        base, choices, many = _annotation(node.annotation)
        takes: Takes = "many" if many else "maybe" if base == "bool" else "one"
        names = [f"--{name}"]
        if "_" in name:
            names.append(f"--{name.replace('_', '-')}")
        if base == "bool" and (not hf or default is True):
            names += [f"--no_{name}", f"--no-{name.replace('_', '-')}"]
        yield Option(tuple(names), name, node, owner, base, choices, takes, not has_default, default)


def _default(project: Project, value: ast.expr | None, owner: Scope) -> tuple[object, bool, bool]:
    """(default, whether there is one, whether the field is not part of ``__init__``)."""
    if value is None:
        return UNKNOWN, False, False
    if isinstance(value, ast.Call) and last_name(value.func) in ("field", "HfArg"):
        given = {k.arg: k.value for k in value.keywords}
        hidden = isinstance(given.get("init"), ast.Constant) and given["init"].value is False  # type: ignore[attr-defined]
        if "default" in given:
            found = values(project, given["default"], owner)
            return (found[0].value if len(found) == 1 else UNKNOWN), True, hidden
        return UNKNOWN, "default_factory" in given or None in given or bool(value.args), hidden
    found = values(project, value, owner)
    return (found[0].value if len(found) == 1 else UNKNOWN), True, False


def _annotation(node: ast.expr) -> tuple[str, tuple[object, ...] | None, bool]:
    """(scalar type or "", choices of a Literal, whether it takes several values)."""
    match node:
        case ast.Constant(value=str() as text):
            try:
                return _annotation(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return "", None, False
        case ast.Name(id=name) if name in SCALARS:
            return name, None, False
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            sides = [s for s in (left, right) if not (isinstance(s, ast.Constant) and s.value is None)]
            return _annotation(sides[0]) if len(sides) == 1 else ("", None, False)
        case ast.Subscript(value=base, slice=inner):
            match last_name(base):
                case "Optional" | "Annotated":
                    first = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
                    return _annotation(first)
                case "Union":
                    items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                    rest = [i for i in items if not (isinstance(i, ast.Constant) and i.value is None)]
                    return _annotation(rest[0]) if len(rest) == 1 else ("", None, False)
                case "List" | "list" | "Sequence" | "Tuple" | "tuple":
                    return "", None, True
                case "Literal":
                    items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                    if all(isinstance(i, ast.Constant) for i in items):
                        return "", tuple(i.value for i in items if isinstance(i, ast.Constant)), False
    return "", None, False


def _tyro(project: Project, call: Call) -> Parser | None:
    item = call.argument("f", 0)
    owner = project.resolve(item, call.scope) if item is not None else None
    if item is None or owner is None or owner.kind != "class" or call.argument("args") is not None:
        return None
    options: list[Option] = []
    libraries: list[Library] = []
    closed = _collect(project, item, call.scope, options, libraries, False)
    # fields of other kinds become options with dotted names, or subcommands
    simple = all(o.type or o.choices is not None or o.takes == "many" for o in options) and not libraries
    return made("tyro", call.node, call.scope, options, closed and simple, (), False)


def takes(project: Project, call: Call) -> tuple[set[str], set[str]] | None:
    """(names that may be given by keyword, names that must be) of the function or dataclass that is called.

    None where that can't be told: ``**kwargs``, classes of other kinds, bases that are not here.
    """
    target = project.resolve(call.node.func, call.scope)
    if target is None:
        return None
    if target.kind == "class":
        start = project.find_method(target, "__init__")
        if start is None:
            return _fields_of(project, target)
        target = start
    node = target.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.args.kwarg is not None:
        return None
    names = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
    names = names[1:] if target.owner is not None else names
    needed = {n for n in names if default_of(node, n) is None}
    return set(names), needed


def _fields_of(project: Project, owner: Scope) -> tuple[set[str], set[str]] | None:
    options: list[Option] = []
    libraries: list[Library] = []
    if not any("dataclass" in written(d) for d in owner.decorators):
        return None
    for base in project.bases(owner):
        if base is not owner and not any("dataclass" in written(d) for d in base.decorators):
            return None
    if not _collect(project, ast.Name(owner.name, ast.Load()), owner.parent or owner, options, libraries, True):
        return None
    return {o.dest for o in options}, {o.dest for o in options if o.required}
