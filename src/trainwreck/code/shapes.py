"""Widths that a network declares, followed through its ``forward`` and through ``Sequential``: where two do not fit.

Only what is certain is followed: layers with one literal width each, straight lines of code, functions that keep the
width. A branch, a loop or a reshape makes the value unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import made
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.values import number

MAX_DEPTH = 20
CONVS = frozenset(["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"])
NORMS = frozenset(["BatchNorm2d", "BatchNorm3d", "InstanceNorm2d", "InstanceNorm3d"])
POOLS = frozenset(["MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "Upsample"])
SPATIAL = frozenset(["max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d", "interpolate"])
KEEP = frozenset(
    [
        "relu",
        "relu_",
        "gelu",
        "silu",
        "elu",
        "selu",
        "celu",
        "mish",
        "tanh",
        "sigmoid",
        "softmax",
        "log_softmax",
        "softplus",
        "hardtanh",
        "hardswish",
        "relu6",
        "dropout",
        "dropout2d",
        "leaky_relu",
        "clone",
        "contiguous",
        "float",
        "half",
        "double",
        "to",
        "cuda",
        "cpu",
        "normalize",
        "exp",
        "log",
        "abs",
        "sin",
        "cos",
        "clamp",
        "detach",
    ]
)
"""Functions and methods that change no dimension."""
PLAIN = frozenset(
    [
        "ReLU",
        "ReLU6",
        "GELU",
        "SiLU",
        "ELU",
        "SELU",
        "CELU",
        "Mish",
        "Tanh",
        "Sigmoid",
        "Softmax",
        "LogSoftmax",
        "Softplus",
        "Hardtanh",
        "Hardswish",
        "LeakyReLU",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "AlphaDropout",
        "Identity",
        "PReLU",
        "Softsign",
    ]
)
"""Layers that change no dimension."""


@dataclass(frozen=True)
class Width:
    """What is known of a value: the size of its last dimension, of its channels, of all behind them."""

    last: int | None = None
    channels: int | None = None
    area: int | None = None
    by: Call | None = None


@dataclass(frozen=True)
class Clash:
    """A layer (or a sum) that gets another width than it was declared for."""

    place: Call | tuple[ast.AST, Scope]
    by: Call
    expected: int
    got: int
    what: str


NOTHING = Width()


def clashes(project: Project) -> Iterator[Clash]:
    """Every certain clash of the program."""
    for call in project.calls("Sequential"):
        if project.called(call).startswith("torch.nn."):
            found: list[Clash] = []
            _Reading(project, call.scope, found).sequence(call, NOTHING)
            yield from found
    for owner in project.classes:
        forward = owner.method("forward")
        if forward is not None and project.is_a(owner, "Module"):
            found = []
            _Reading(project, forward, found).block(getattr(forward.node, "body", []))
            yield from found


class _Reading:
    """One pass over one function."""

    def __init__(self, project: Project, scope: Scope, found: list[Clash]) -> None:
        self.project, self.scope, self.found = project, scope, found
        self.names: dict[str, Width] = {}

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    self.names[name] = self.value(statement.value, 0)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.names[name] = self.value(value, 0)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
                    other = self.value(statement.value, 0)
                    self.names[name] = self.sum(self.names.get(name, NOTHING), other, statement)
                case ast.Return(value=ast.expr() as value):
                    self.value(value, 0)
                case ast.Expr():
                    continue
                case _:
                    for node in ast.walk(statement):
                        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                            self.names.pop(node.id, None)

    def value(self, node: ast.expr, depth: int) -> Width:
        if depth > MAX_DEPTH:
            return NOTHING
        match node:
            case ast.Name(id=name):
                return self.names.get(name, NOTHING)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                one, other = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
                return self.sum(one, other, node)
            case ast.Call():
                return self.call(node, depth)
        return NOTHING

    def sum(self, one: Width, other: Width, node: ast.AST) -> Width:
        for name in ("channels", "last"):
            a, b = getattr(one, name), getattr(other, name)
            if a is not None and b is not None and a != b and 1 not in (a, b) and one.by and other.by:
                self.found.append(Clash((node, self.scope), other.by, a, b, "the two sides of a sum"))
                return NOTHING
        return one if one.by is not None and other.by is not None else NOTHING

    def call(self, node: ast.Call, depth: int) -> Width:
        name, args = last_name(node.func), node.args
        method = isinstance(node.func, ast.Attribute)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        root = self.project.dotted(node.func, self.scope)
        library = root.startswith(("torch.", "F."))
        if library and root.startswith("torch.") and args:
            return self.function(name, self.value(args[0], depth + 1), args[1:])
        layers = made(self.project, node.func, self.scope) if isinstance(node.func, ast.Name | ast.Attribute) else []
        if len(layers) == 1 and len(args) == 1 and self.project.called(layers[0]).startswith("torch.nn."):
            return self.layer(layers[0], self.value(args[0], depth + 1))
        if layers or not method or receiver is None:
            for value in args:
                self.value(value, depth + 1)
            return NOTHING
        return self.function(name, self.value(receiver, depth + 1), args)

    def function(self, name: str, width: Width, rest: list[ast.expr]) -> Width:
        if name in KEEP:
            return width
        if name in SPATIAL:
            return replace(width, last=None, area=None)
        if name == "flatten" and len(rest) == 1 and isinstance(rest[0], ast.Constant) and rest[0].value == 1:
            return self.flat(width)
        if (
            name == "mean"
            and len(rest) == 1
            and written(rest[0]) in ("[2, 3]", "(2, 3)", "[-1, -2]", "(-2, -1)", "[-2, -1]")
        ):
            return Width(last=width.channels, by=width.by)
        return NOTHING

    def flat(self, width: Width) -> Width:
        if width.channels is not None and width.area is not None:
            return Width(last=width.channels * width.area, by=width.by)
        return NOTHING

    def sequence(self, call: Call, width: Width) -> Width:
        for item in call.node.args:
            if not isinstance(item, ast.Call):
                width = NOTHING
                continue
            inner = Call(item, call.scope)
            width = self.layer(inner, width) if self.project.called(inner).startswith("torch.nn.") else NOTHING
        return width

    def size(self, layer: Call, name: str, place: int) -> int | None:
        value = number(self.project, layer.argument(name, place), layer.scope)
        return int(value) if value is not None else None

    def need(self, layer: Call, got: int | None, expected: int | None, by: Call | None, what: str) -> bool:
        if got is None or expected is None or by is None or got == expected:
            return True
        self.found.append(Clash(layer, by, expected, got, what))
        return False

    def layer(self, layer: Call, width: Width) -> Width:
        name = layer.name
        if name in PLAIN:
            return width
        if name == "Sequential":
            return (
                self.sequence(layer, width) if self.scope.name == "forward" and width.by else self.quiet(layer, width)
            )
        if name == "Linear":
            self.need(layer, width.last, self.size(layer, "in_features", 0), width.by, "features")
            return Width(last=self.size(layer, "out_features", 1), by=layer)
        if name in CONVS:
            self.need(layer, width.channels, self.size(layer, "in_channels", 0), width.by, "channels")
            return Width(channels=self.size(layer, "out_channels", 1), by=layer)
        if name in NORMS:
            self.need(layer, width.channels, self.size(layer, "num_features", 0), width.by, "channels")
            return width
        if name == "BatchNorm1d":
            got = width.channels if width.channels is not None else width.last
            self.need(layer, got, self.size(layer, "num_features", 0), width.by, "features")
            return width
        if name == "GroupNorm":
            self.need(layer, width.channels, self.size(layer, "num_channels", 1), width.by, "channels")
            return width
        if name == "LayerNorm":
            self.need(layer, width.last, self.size(layer, "normalized_shape", 0), width.by, "features")
            return width
        if name == "Embedding":
            return Width(last=self.size(layer, "embedding_dim", 1), by=layer)
        if name in POOLS:
            return replace(width, last=None, area=None)
        if name in ("AdaptiveAvgPool2d", "AdaptiveMaxPool2d"):
            at = layer.argument("output_size", 0)
            side = number(self.project, at, layer.scope)
            sides = [side, side]
            if isinstance(at, ast.Tuple) and len(at.elts) == 2:
                sides = [number(self.project, e, layer.scope) for e in at.elts]
            area = int(sides[0] * sides[1]) if sides[0] is not None and sides[1] is not None else None
            return replace(width, last=None, area=area)
        if name == "Flatten":
            return self.flat(width) if not layer.node.args and not layer.node.keywords else NOTHING
        return NOTHING

    def quiet(self, layer: Call, width: Width) -> Width:
        """A nested stack, whose own clashes are told where it is read by itself."""
        inner = _Reading(self.project, layer.scope, [])
        return inner.sequence(layer, width)
