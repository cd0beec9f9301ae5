"""Which code reads which configuration file, how, and under which name it then goes by.

A load is ``yaml.safe_load(open(…))``, ``json.load``, ``OmegaConf.load``, ``tomllib.load`` and the like, with the file
written out, or named by an option whose value a launch command or its default gives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.index import Settings, of
from trainwreck.code.settings.tree import Document
from trainwreck.code.values import values

YAML = frozenset(["yaml.safe_load", "yaml.load", "yaml.full_load", "yaml.unsafe_load"])
LOADERS = {
    **dict.fromkeys(YAML, "pyyaml"),
    "json.load": "json",
    "json.loads": "json",
    "omegaconf.OmegaConf.load": "omegaconf",
    "OmegaConf.load": "omegaconf",
    "tomllib.load": "toml",
    "toml.load": "toml",
}


@dataclass(frozen=True, eq=False)
class Load:
    """One call that reads a configuration. ``documents`` are the files of the project that it is known to read;
    ``exact`` where the program names the file itself."""

    call: Call
    library: str
    documents: Sequence[Document]
    exact: bool


def loads(project: Project) -> Sequence[Load]:
    """All calls that read a configuration of the project, made once."""
    if "loads" not in project.memo:
        project.memo["loads"] = list(_loads(project))
    found: Sequence[Load] = project.memo["loads"]
    return found


def _loads(project: Project) -> Iterator[Load]:
    settings = of(project)
    if not settings.paths:
        return
    for call in project.calls("safe_load", "load", "full_load", "unsafe_load", "loads"):
        library = LOADERS.get(project.called(call))
        if library is None or not call.node.args:
            continue
        names = list(dict.fromkeys(_files(project, call.node.args[0], call.scope, 0)))
        paths = [p for n in names if (p := settings.find(n, call.scope.module.path)) is not None]
        documents = [d for p in dict.fromkeys(paths) if (d := settings.document(p)) is not None]
        if documents:
            yield Load(call, library, documents, len(names) == 1)


def _files(project: Project, node: ast.expr, scope: Scope, depth: int) -> Iterator[str]:
    """Names of files that ``node`` (a stream, a path, a text) can come from."""
    if depth > 6:
        return
    for known in values(project, node, scope):
        if isinstance(known.value, str) and known.value.endswith((".yaml", ".yml", ".json", ".toml")):
            yield known.value
    match node:
        case ast.Call(func=ast.Name(id="open" | "Path" | "str"), args=[first, *_]):
            yield from _files(project, first, scope, depth + 1)
        case ast.Call(func=ast.Attribute(value=inner, attr="read" | "read_text" | "open" | "resolve" | "absolute")):
            yield from _files(project, inner, scope, depth + 1)
        case ast.Call(func=ast.Attribute(attr="join"), args=[*_, last]):
            yield from _files(project, last, scope, depth + 1)
        case ast.Call(func=ast.Attribute(attr="Path" | "open"), args=[first, *_]):
            yield from _files(project, first, scope, depth + 1)
        case ast.BinOp(op=ast.Div(), right=last):
            yield from _files(project, last, scope, depth + 1)
        case ast.Name():
            for binding in project.lookup(node.id, scope):
                if binding.kind in ("assign", "with") and binding.value is not None and not binding.path:
                    yield from _files(project, binding.value, binding.scope, depth + 1)
                elif binding.kind == "param":
                    for value, where in project.arguments(binding):
                        yield from _files(project, value, where, depth + 1)
        case ast.Attribute(attr=name):
            yield from _flagged(of(project), scope.module.path, name)


def _flagged(settings: Settings, path: str, name: str) -> Iterator[str]:
    """What the launch commands of this script give for the option ``name``."""
    for launch in settings.launches:
        if settings.script_of(launch) == path:
            flag = launch.flag(name)
            if flag is not None and flag.text is not None:
                yield flag.text


@dataclass(frozen=True, eq=False)
class Read:
    """One reading of a key: ``cfg["a"]``, ``cfg.a``, ``cfg.get("a")``. ``optional`` where absence is no error."""

    keys: tuple[str, ...]
    node: ast.expr
    scope: Scope
    optional: bool


class Use:
    """How the result of a load is used. ``whole``: it is handed on or changed, so that more may be read or written.

    ``expanded``: calls that get a section as keywords (``Config(**cfg["model"])``), with the keys of the section."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.whole = False
        self.expanded: list[tuple[tuple[str, ...], Call]] = []


def use_of(project: Project, load: Load) -> Use:
    """Every reading of keys of what ``load`` gives, as far as it is bound to one name of its scope."""
    use = Use()
    _follow(project, load.call.node, load.call.scope, (), use, load.library == "omegaconf", 0)
    return use


def _follow(
    project: Project, node: ast.expr, scope: Scope, keys: tuple[str, ...], use: Use, dotted: bool, depth: int
) -> None:
    above = project.parent(node, scope)
    match above:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node and depth < 4:
            bound = [b for b in scope.bindings.get(name, ()) if b.kind != "append"]
            written = [b for b in scope.bindings.get(name, ()) if b.kind == "append"]
            if len(bound) != 1 or written:
                use.whole = True
                return
            for other, where in _uses(project, name, scope):
                _follow(project, other, where, keys, use, dotted, depth + 1)
        case ast.Subscript(value=value, slice=ast.Constant(value=str() as key)) if value is node:
            if isinstance(above.ctx, ast.Load):
                _reading(project, above, scope, (*keys, key), use, dotted, depth)
            else:
                use.whole = True
        case ast.Attribute(value=value, attr="get") if value is node:
            call = project.parent(above, scope)
            first = call.args[0] if isinstance(call, ast.Call) and call.func is above and call.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and isinstance(call, ast.Call):
                use.reads.append(Read((*keys, first.value), call, scope, True))
            else:
                use.whole = True
        case ast.Attribute(value=value, attr=key) if value is node and dotted and not key.startswith("_"):
            outer = project.parent(above, scope)
            called = isinstance(outer, ast.Call) and outer.func is above
            if isinstance(above.ctx, ast.Load) and not called:
                _reading(project, above, scope, (*keys, key), use, dotted, depth)
            else:
                use.whole = True
        case ast.keyword(arg=None):
            call = project.parent(above, scope)
            if isinstance(call, ast.Call):
                use.expanded.append((keys, Call(call, scope)))
            use.whole = True
        case ast.Compare(ops=[ast.In() | ast.NotIn()], left=ast.Constant(value=str() as key)):
            use.reads.append(Read((*keys, key), above, scope, True))
        case _:
            use.whole = True


def _reading(
    project: Project,
    node: ast.Subscript | ast.Attribute,
    scope: Scope,
    keys: tuple[str, ...],
    use: Use,
    dotted: bool,
    depth: int,
) -> None:
    """A key is read; what is under it may be a section that is read further, or bound to a name."""
    above = project.parent(node, scope)
    further = isinstance(above, ast.Subscript | ast.Attribute) and above.value is node
    further = further or (isinstance(above, ast.keyword) and above.arg is None)
    use.reads.append(Read(keys, node, scope, _guarded(project, node, scope)))
    section = Use()
    if further or (isinstance(above, ast.Assign) and len(keys) < 4):
        _follow(project, node, scope, keys, section, dotted, depth + 1)
        use.reads += section.reads
        use.expanded += section.expanded


def _guarded(project: Project, node: ast.AST, scope: Scope) -> bool:
    """True where the reading is under a test or in a ``try`` that may leave it out."""
    for above in project.ancestors(node, scope):
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            return False
        if isinstance(above, ast.If | ast.Try | ast.IfExp | ast.BoolOp | ast.While | ast.ExceptHandler):
            return True
    return False


def _uses(project: Project, name: str, scope: Scope) -> Iterator[tuple[ast.Name, Scope]]:
    todo = [scope]
    while todo:
        at = todo.pop()
        if at is not scope and name in at.bindings:
            continue
        for node in project.within(at, ast.Name):
            assert isinstance(node, ast.Name)
            if node.id == name and isinstance(node.ctx, ast.Load):
                yield node, at
        todo += at.children
