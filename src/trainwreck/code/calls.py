"""Calls and functions as written: names, arguments, defaults."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from trainwreck.code.scopes import FunctionNode, Scope

WRAPPERS = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "train",
        "eval",
        "requires_grad_",
        "compile",
        "DataParallel",
        "DistributedDataParallel",
        "get_peft_model",
        "prepare",
        "prepare_model",
        "prepare_model_for_kbit_training",
        "FullyShardedDataParallel",
        "deepcopy",
        "copy",
        "share_memory",
        "setup",
        "unwrap_model",
        "AveragedModel",
    ]
)
"""Calls that give back the object that they were given (or a wrapping of it)."""


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call in the program: the node and the scope that it stands in."""

    node: ast.Call
    scope: Scope

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def name(self) -> str:
        """The last part of what is called."""
        return last_name(self.node.func)

    @property
    def receiver(self) -> ast.expr | None:
        return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None

    def argument(self, keyword: str, position: int | None = None) -> ast.expr | None:
        """The argument of this keyword, else at this position."""
        for item in self.node.keywords:
            if item.arg == keyword:
                return item.value
        if position is not None and position < len(self.node.args):
            args = self.node.args[: position + 1]
            return None if any(isinstance(a, ast.Starred) for a in args) else args[position]
        return None

    @property
    def open_ended(self) -> bool:
        """True where ``*args`` or ``**kwargs`` may bring further arguments."""
        return any(k.arg is None for k in self.node.keywords) or any(isinstance(a, ast.Starred) for a in self.node.args)


def last_name(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Call():
            return last_name(node.func)
    return ""


def written(node: ast.AST | None) -> str:
    """The code of ``node`` in one line, for comparing and for sentences."""
    if node is None:
        return ""
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return ""


def default_of(node: FunctionNode, name: str) -> ast.expr | None:
    """The default of a parameter."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    for arg, default in zip(reversed(positional), reversed(args.defaults), strict=False):
        if arg.arg == name:
            return default
    for arg, keyword_default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if arg.arg == name:
            return keyword_default
    return None


def annotation_of(node: ast.AST, name: str) -> ast.expr | None:
    """The annotation of a parameter of a function."""
    if not isinstance(node, FunctionNode):
        return None
    args = node.args
    return next((a.annotation for a in (*args.posonlyargs, *args.args, *args.kwonlyargs) if a.arg == name), None)


def enclosing_class(scope: Scope) -> Scope | None:
    at: Scope | None = scope
    while at is not None and at.kind != "class":
        at = at.parent
    return at
