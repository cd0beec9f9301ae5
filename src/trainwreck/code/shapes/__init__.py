"""Shapes that a program states, followed through its layers and functions: where two do not fit."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from contextlib import suppress

from trainwreck.code.calls import Call, default_of
from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.shapes.domain import UNKNOWN, Clash, Instance, Layer
from trainwreck.code.shapes.expressions import Reading
from trainwreck.code.shapes.reading import Frame, Spent

__all__ = ["Clash", "clashes"]

MAX_MODULES = 400
"""Network classes that are read in one project; more is a library, not a program."""


def clashes(project: Project, rehearsed: Container[ast.AST] = ()) -> Iterator[Clash]:
    """Every certain clash of the program, each place once; what was ``rehearsed`` (modules, functions, calls that
    make layers) is not read again."""
    told: set[int] = set()
    for found in (*_scripts(project, rehearsed), *_stacks(project, rehearsed), *_networks(project, rehearsed)):
        node = found.place.node if isinstance(found.place, Call) else found.place[0]
        if id(node) not in told:
            told.add(id(node))
            yield found


def _read(project: Project, what: str, *given: object) -> list[Clash]:
    """The clashes of one question; what was found before the budget ended stays."""
    reading = Reading(project)
    with suppress(Spent, RecursionError):
        getattr(_Questions(reading), what)(*given)
    return reading.found


class _Questions:
    """What is read: the code of a file or function that uses networks, a stack of layers, a network by itself."""

    def __init__(self, reading: Reading) -> None:
        self.reading, self.project = reading, reading.project

    def body(self, scope: Scope) -> None:
        frame = Frame(scope, dict.fromkeys(scope.params, UNKNOWN))
        self.reading.block(getattr(scope.node, "body", []), frame)

    def stack(self, call: Call) -> None:
        frame = Frame(call.scope, {})
        layer = self.reading.value(call.node, frame)
        if isinstance(layer, Layer | Instance):  # not a ``Sequential`` of another library
            self.reading.called(layer, [UNKNOWN], {}, frame)

    def network(self, owner: Scope, args: dict[str, object]) -> None:
        frame = Frame(owner.parent or owner, {})
        instance = self.reading.built(owner, None, [], args, frame)
        if isinstance(instance, Instance):
            self.reading.called(instance, [], {}, frame)


def _scripts(project: Project, rehearsed: Container[ast.AST]) -> Iterator[Clash]:
    """Code that calls networks with tensors of known sizes: module level and plain functions."""
    for walked in project.walked.values():
        if "torch" not in walked.top.module.text:
            continue
        for scope in walked.scopes:
            if scope.kind == "class" or scope.owner is not None or scope.node in rehearsed:
                continue
            yield from _read(project, "body", scope)


def _stacks(project: Project, rehearsed: Container[ast.AST]) -> Iterator[Clash]:
    for call in project.calls("Sequential"):
        if call.node not in rehearsed and project.called(call).startswith("torch.nn."):
            yield from _read(project, "stack", call)


def _networks(project: Project, rehearsed: Container[ast.AST]) -> Iterator[Clash]:
    """Each network with the sizes that are certain: defaults, and arguments that every caller gives alike."""
    owners = [c for c in project.classes if c.method("forward") is not None and project.is_a(c, "Module")]
    for owner in owners[:MAX_MODULES]:
        forward = owner.method("forward")
        if forward is not None and forward.node in rehearsed:
            continue
        init = project.find_method(owner, "__init__")
        args: dict[str, object] = {}
        if init is not None:
            for name in init.params[1:]:
                known = _certain(project, init, name)
                if known is not _DEFAULT:
                    args[name] = known
        yield from _read(project, "network", owner, args)


_DEFAULT = object()


def _certain(project: Project, init: Scope, name: str) -> object:
    """The one constant that a parameter of ``__init__`` can be; ``_DEFAULT`` where every caller leaves it out."""
    binding = next((b for b in init.bindings.get(name, ()) if b.kind == "param"), None)
    given = project.arguments(binding) if binding is not None else []
    if not given or any(c.open_ended for c in project.callers(init)):
        return UNKNOWN
    default = default_of(init.node, name) if isinstance(init.node, FunctionNode) else None
    if all(value is default for value, _ in given):
        return _DEFAULT
    constants = [v.value for v, _ in given if isinstance(v, ast.Constant)]
    alike = len(constants) == len(given) and len(set(constants)) == 1
    return constants[0] if alike else UNKNOWN
