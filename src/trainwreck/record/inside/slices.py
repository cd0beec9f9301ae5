"""The part of a training step that computes the loss, cut out of the source of the frame that called backward.

Only statements that carry the loss are kept: they assign names that now hold values with a graph. What draws or
prepares data, counts, logs or steps is left out, and the present values of its variables stand for it. So the step can
run once more without drawing data twice.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch

from .sites import NoSlice, Site, compiled, site

LOSS = "__trainwreck_loss__"
"""Name under which a slice leaves what backward was called on."""
MUTATORS = ("append", "extend", "add", "insert", "update", "setdefault", "appendleft", "backward_hook")
MAX_DEPTH = 4
MAX_ITEMS = 400
"""How deep, and how wide, containers are searched for values with a graph."""
SIDE_EFFECTS = re.compile(
    r"\b(wandb|logger|logging|log|writer|print|tqdm|pbar|bar|progress|mlflow|comet|neptune|tensorboard|scalar|update|"
    r"write|info|debug|warning|set|postfix|save|dump|step|zero|eval|train|next|sleep|append|flush|close)\b"
)
"""Words in the name of a method that is not called again: it tells, stores or steps."""


@dataclass(slots=True)
class Slice:
    """Statements to run, one code object each, in the namespace of their frame."""

    code: list[CodeType]
    namespace: dict[str, Any]
    path: str
    line: int
    lines: list[int]
    carried: list[str] = field(default_factory=list)
    """Names that are read before the slice assigns them: state from the step before, whose old value is gone."""
    assigned: dict[str, int] = field(default_factory=dict)
    """Line of the last assignment of each name in the step, kept or not."""
    skipped: list[ast.stmt] = field(default_factory=list)
    scope: list[ast.stmt] = field(default_factory=list)


def cut(frame: FrameType, instruction: int | None = None, direct: bool = True, extend: Iterable[str] = ()) -> Slice:
    """The slice of the step in ``frame`` that leads to the call that it is executing.

    ``direct``: the call is ``backward`` itself, so that its receiver (or first argument) is the loss; otherwise any
    argument may be. ``extend``: names whose assignments are kept although their values carry no graph. Raises NoSlice.
    """
    code = frame.f_code
    place = site(code, frame.f_lasti if instruction is None else instruction)
    namespace = frame.f_locals if frame.f_locals is frame.f_globals else {**frame.f_globals, **frame.f_locals}
    losses = losses_of(place.call, direct)
    if not losses:
        raise NoSlice("no call there")
    cutter = _Cutter(namespace, place, set(extend))
    for start in _regions(place):
        kept, before = cutter.region(start, losses)
        if kept or any(_computes(e) for e in losses):
            return _slice(cutter, kept, _unrolled(losses, place, start), namespace, code, place, before)
    raise NoSlice("the loss comes from the caller")


def losses_of(call: ast.Call | None, direct: bool) -> list[ast.expr]:
    """Expressions that give what backward runs on."""
    if call is None:
        return []
    if direct and isinstance(call.func, ast.Attribute) and not _is_module_path(call.func.value):
        return [call.func.value]
    given: list[ast.expr] = [*call.args, *(k.value for k in call.keywords)]
    given = [g.value if isinstance(g, ast.Starred) else g for g in given]
    return given[:1] if direct else given


def _is_module_path(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in ("torch", "torch.autograd", "autograd")


def _unrolled(losses: Sequence[ast.expr], place: Site, start: int) -> list[ast.expr]:
    """Where the loss is the variable of a loop within the step, all that the loop goes over."""
    found = list(losses)
    for node, part, _ in place.chain[start + 1 :]:
        if isinstance(node, ast.For) and part == "body" and any(set(targets(node.target)) & reads(e) for e in found):
            found = [ast.List(elts=[ast.Starred(value=node.iter, ctx=ast.Load())], ctx=ast.Load())]
    return found


def calls_before(place: Site) -> list[ast.stmt]:
    """Statements of the same step that call methods, which may keep what backward needs (``self.forward()``).

    Those that log, print, step or zero are left out.
    """
    start = _regions(place)[0]
    found: list[ast.stmt] = []
    for node, part, index in place.chain[start:]:
        for statement in getattr(node, part)[:index]:
            call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and _changes_state(call.func):
                found.append(statement)
    return found


def _changes_state(function: ast.Attribute) -> bool:
    return not SIDE_EFFECTS.search(ast.unparse(function).lower().replace("_", "."))


def _computes(node: ast.expr) -> bool:
    return any(isinstance(n, (ast.Call, ast.BinOp)) for n in ast.walk(node))


def _regions(place: Site) -> list[int]:
    """Where the step may start, innermost first: depths in the chain at which a loop body or the function begins."""
    loops = [
        depth
        for depth, (node, part, _) in enumerate(place.chain)
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)) and part == "body"
    ]
    return [*reversed(loops), 0] if 0 not in loops else list(reversed(loops))


class _Cutter:
    """Walks statements backwards from the loss and keeps those that it needs."""

    def __init__(self, namespace: dict[str, Any], place: Site, extend: set[str]) -> None:
        self.values = namespace
        self.place = place
        self.extend = extend
        self.needed: set[str] = set()
        self.made: set[str] = set()
        self.assigned: dict[str, int] = {}
        self.skipped: list[ast.stmt] = []

    def region(self, start: int, losses: Sequence[ast.expr]) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Kept statements of the step that begins at depth ``start`` of the chain, and all of its statements."""
        self.needed = set().union(*(reads(e) for e in losses))
        self.made, self.assigned, self.skipped = set(), {}, []
        chain = self.place.chain
        for node, part, _ in chain[start + 1 :]:
            if isinstance(node, (ast.For, ast.AsyncFor)) and part == "body":
                self.needed |= reads(node.iter)
        kept: list[ast.stmt] = []
        before: list[ast.stmt] = []
        for depth in range(len(chain) - 1, start - 1, -1):
            node, part, index = chain[depth]
            block: list[ast.stmt] = getattr(node, part)[:index]
            if depth < len(chain) - 1:
                inner, inner_part, _ = chain[depth + 1]
                if isinstance(inner, (ast.With, ast.AsyncWith)) and inner_part == "body":
                    # What stands in the same block as the loss runs under the same contexts.
                    for item in inner.items:
                        self.needed |= reads(item.context_expr)
                    if kept:
                        kept = [ast.copy_location(ast.With(items=inner.items, body=kept), inner)]
            kept = self.block(block) + kept
            before = block + before
        for node, part, _ in chain[start:]:
            if isinstance(node, (ast.For, ast.AsyncFor)) and part == "body":
                for name in targets(node.target):
                    self.assigned.setdefault(name, node.lineno)
        return kept, before

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The needed ones among ``statements``, seen from the last to the first."""
        kept: list[ast.stmt] = []
        for statement in reversed(statements):
            found = self.statement(statement)
            if found is None:
                self.skipped.append(statement)
            else:
                kept.append(found)
        return kept[::-1]

    def statement(self, node: ast.stmt) -> ast.stmt | None:
        match node:
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                return self.assignment(node)
            case ast.Expr(value=ast.Call() as call):
                return node if self.mutates(call) else None
            case ast.If():
                body, orelse = self.branch(node.body), self.branch(node.orelse)
                if not body and not orelse:
                    return None
                self.needed |= reads(node.test)
                kept = ast.If(test=node.test, body=body or [ast.Pass()], orelse=orelse)
                return ast.fix_missing_locations(ast.copy_location(kept, node))
            case ast.With():
                body = self.block(node.body)
                if not body:
                    return None
                for item in node.items:
                    self.needed |= reads(item.context_expr)
                return ast.copy_location(ast.With(items=node.items, body=body), node)
            case ast.For():
                return self.loop(node)
            case ast.Try():
                body = self.block([*node.body, *node.orelse])
                if not body:
                    return None
                always = ast.Constant(value=True)
                kept = ast.If(test=always, body=body, orelse=[])
                return ast.fix_missing_locations(ast.copy_location(kept, node))
            case _:
                return None

    def branch(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """One side of an ``if``: what it needs is needed, what it makes may still be needed from before."""
        needed = set(self.needed)
        kept = self.block(statements)
        self.needed |= needed
        return kept

    def loop(self, node: ast.For) -> ast.stmt | None:
        needed = set(self.needed)
        body = self.block(node.body)
        if not body:
            self.needed = needed
            return None
        self.needed |= needed
        again = self.block(node.body)  # What one round needs, the round before may make.
        self.needed |= needed | reads(node.iter)
        kept = ast.For(target=node.target, iter=node.iter, body=again or body, orelse=[])
        return ast.copy_location(kept, node)

    def assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> ast.stmt | None:
        places = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name for place in places for name in targets(place)]
        for name in names:
            self.assigned.setdefault(name, node.lineno)
        if node.value is None:
            return None
        wanted = [n for n in names if n in self.needed or n.split(".")[0].split("[")[0] in self.needed]
        wanted += [n for n in names if any(w.startswith(n + ".") for w in self.needed)]
        if not any(self.carries(n) for n in wanted) and not any(n.split("[")[0] in self.extend for n in names):
            return None
        plain = {n for place in places for n in _plain_targets(place)}
        if not isinstance(node, ast.AugAssign):
            self.needed -= plain
        self.made |= set(names)
        self.needed |= reads(node.value)
        for place in places:
            self.needed |= reads(place) - plain
        if isinstance(node, ast.AugAssign):
            self.needed |= set(names)
        return node

    def mutates(self, call: ast.Call) -> bool:
        """Whether an expression statement fills a container, or changes a tensor, that the loss needs."""
        if not isinstance(call.func, ast.Attribute):
            return False
        root = ast.unparse(call.func.value)
        changes = call.func.attr in MUTATORS or (call.func.attr.endswith("_") and call.func.attr != "zero_grad_")
        if not changes or not (root in self.needed or root.split(".")[0] in self.needed) or not self.carries(root):
            return False
        for argument in [*call.args, *(k.value for k in call.keywords)]:
            self.needed |= reads(argument)
        return True

    def carries(self, name: str) -> bool:
        """Whether the present value under ``name`` has a graph; a name that is gone may have had one."""
        try:
            value = evaluate(name, self.values)
        except Exception:
            return name.isidentifier()
        return carries(value)


def evaluate(name: str, values: dict[str, Any]) -> Any:
    """The value of a name with attributes and subscripts, without running any code of the user's.

    Raises KeyError, AttributeError, IndexError, ValueError, TypeError.
    """
    return _evaluate(ast.parse(name, mode="eval").body, values)


def _evaluate(node: ast.expr, values: dict[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Attribute(value=inner, attr=attribute):
            owner = _evaluate(inner, values)
            held = getattr(owner, "__dict__", {})
            if attribute in held:
                return held[attribute]
            for table in ("_parameters", "_buffers", "_modules"):
                if isinstance(owner, torch.nn.Module) and attribute in owner.__dict__.get(table, {}):
                    return owner.__dict__[table][attribute]
            raise AttributeError(attribute)
        case ast.Subscript(value=inner, slice=key):
            container = _evaluate(inner, values)
            if type(container) not in (dict, list, tuple):
                raise TypeError(type(container).__name__)
            return container[key.value if isinstance(key, ast.Constant) else _evaluate(key, values)]
        case _:
            raise ValueError("not a name")


def carries(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether ``value`` is or holds a tensor that takes part in a graph."""
    if isinstance(value, torch.Tensor):
        return bool(value.requires_grad)
    if depth == 0 or isinstance(value, (torch.nn.Module, type, str, bytes, int, float, torch.optim.Optimizer)):
        return False
    if isinstance(value, dict):
        return any(carries(v, depth - 1) for v in list(value.values())[:MAX_ITEMS])
    if isinstance(value, (list, tuple, set)):
        return any(carries(v, depth - 1) for v in list(value)[:MAX_ITEMS])
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict) and not inspect.isroutine(value) and not inspect.ismodule(value):
        return any(carries(v, depth - 1) for v in list(held.values())[:40])
    return False


def targets(node: ast.expr) -> list[str]:
    """Names that an assignment to ``node`` changes: dotted and subscripted ones in full."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return [name for item in node.elts for name in targets(item)]
    if isinstance(node, ast.Starred):
        return targets(node.value)
    return [ast.unparse(node)]


def _plain_targets(node: ast.expr) -> list[str]:
    """Targets that an assignment replaces as a whole."""
    return [name for name in targets(node) if "[" not in name]


def reads(node: ast.AST) -> set[str]:
    """Names and attribute paths that are read in ``node``, without those that it binds itself."""
    found: set[str] = set()
    bound: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            (found if isinstance(inner.ctx, ast.Load) else bound).add(inner.id)
        elif isinstance(inner, (ast.Attribute, ast.Subscript)) and isinstance(inner.ctx, ast.Load):
            text = ast.unparse(inner)
            if "(" not in text:
                found.add(text)
        elif isinstance(inner, ast.arg):
            bound.add(inner.arg)
    comprehensions = any(isinstance(n, (ast.comprehension, ast.Lambda)) for n in ast.walk(node))
    return found - bound if comprehensions else found


def _slice(
    cutter: _Cutter,
    kept: list[ast.stmt],
    losses: list[ast.expr],
    namespace: dict[str, Any],
    code: CodeType,
    place: Site,
    before: list[ast.stmt],
) -> Slice:
    last = place.statement
    many = ast.Tuple(elts=losses, ctx=ast.Load()) if len(losses) > 1 else losses[0]
    final = ast.Assign(targets=[ast.Name(id=LOSS, ctx=ast.Store())], value=many)
    wrapped: list[ast.stmt] = [ast.fix_missing_locations(ast.copy_location(final, last))]
    for node, part, _ in reversed(place.chain):
        if isinstance(node, (ast.For, ast.While, ast.FunctionDef)):
            break
        if isinstance(node, (ast.With, ast.AsyncWith)) and part == "body" and any(_computes(e) for e in losses):
            wrapped = [ast.copy_location(ast.With(items=node.items, body=wrapped), node)]
    return Slice(
        compiled([*kept, *wrapped], code, place.owner, namespace),
        namespace,
        code.co_filename,
        last.lineno,
        [s.lineno for s in kept],
        sorted(n for n in cutter.made & cutter.needed if n.isidentifier() or "." in n),
        dict(cutter.assigned),
        cutter.skipped,
        before,
    )
