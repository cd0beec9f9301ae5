"""Which parameters an optimizer holds, and which parts of a network have any."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import made, optimizers, source
from trainwreck.code.order import constructors
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import modules
from trainwreck.core.row import Row

MAX_DEPTH = 12
WITHOUT = pattern(
    r"^(ReLU\w*|GELU|SiLU|ELU|SELU|CELU|Mish|Tanh|Sigmoid|Softmax\w*|LogSoftmax|Softplus|Hard\w+|LeakyReLU|Dropout\w*|"
    r"AlphaDropout|Identity|Flatten|Unflatten|\w*Pool\d?d?|Upsample|Pixel\w+|Fold|Unfold|\w*Loss|\w*Pad\d?d|Threshold)$"
)
"""Layers of ``torch.nn`` without parameters."""
KEEPERS = pattern(r"teacher|target|frozen|pretrain|momentum|ema|(^|_)ref|old|clip_|vgg|lpips|percept|fixed|oracle")
"""Names of networks that are meant not to learn."""


class Held(Row):
    """One thing that an optimizer was given: an object whose parameters were asked for, or a name."""

    node: ast.expr
    scope: Scope
    whole: bool
    """``x.parameters()``; False for a name or a list of something."""


def held(project: Project, call: Call) -> tuple[list[Held], bool]:
    """What the optimizer built by ``call`` was given, and whether all of it could be seen."""
    params = call.argument("params", 0)
    found: list[Held] = []
    complete = params is not None and _collect(project, params, call.scope, found, 0)
    return found, complete


def _collect(project: Project, node: ast.expr, scope: Scope, found: list[Held], depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="parameters" | "named_parameters")):
            found.append(Held(inner, scope, True))
            return True
        case ast.Call(func=func, args=args, keywords=keywords) if last_name(func) in (
            "list",
            "chain",
            "iter",
            "tuple",
            "filter",
            "set",
            "values",
            "sorted",
            "dict",
            "from_iterable",
        ):
            asked = list(args)[1:] if last_name(func) == "filter" else list(args)
            asked += [k.value for k in keywords]
            if last_name(func) == "values" and isinstance(func, ast.Attribute):
                asked = [func.value]
            return all([_collect(project, a, scope, found, depth + 1) for a in asked])
        case ast.Starred(value=value):
            return _collect(project, value, scope, found, depth + 1)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return all([_collect(project, side, scope, found, depth + 1) for side in (left, right)])
        case ast.List() | ast.Tuple():
            return all([_collect(project, e, scope, found, depth + 1) for e in node.elts])
        case ast.Dict(keys=keys, values=values):
            pairs = list(zip(keys, values, strict=True))
            groups = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "params"]
            return bool(groups) and all([_collect(project, v, scope, found, depth + 1) for v in groups])
        case ast.ListComp() | ast.GeneratorExp():
            return all([_collect(project, g.iter, scope, found, depth + 1) for g in node.generators])
        case ast.Name() | ast.Attribute():
            return _named(project, node, scope, found, depth)
        case ast.Call(func=func):
            target = project.resolve(func, scope)
            if target is not None and target.kind == "function" and target.returns:
                seen = [_collect(project, v, target, found, depth + 1) for v in target.returns if v is not None]
                return bool(seen) and all(seen)
    return False


def _named(project: Project, node: ast.Name | ast.Attribute, scope: Scope, found: list[Held], depth: int) -> bool:
    bindings = project.bindings(node, scope)
    complete = bool(bindings)
    for binding in bindings:
        if binding.kind == "param":
            given = project.arguments(binding)
            complete &= bool(given) and all([_collect(project, v, s, found, depth + 1) for v, s in given])
        elif binding.value is None or binding.kind == "loop":
            complete = False
        elif isinstance(binding.value, ast.Call) and last_name(binding.value.func) == "Parameter":
            found.append(Held(node, scope, False))
        else:
            complete &= _collect(project, binding.value, binding.scope, found, depth + 1)
    return complete


def learners(project: Project) -> list[Scope]:
    """Classes of the project all of whose parameters some optimizer was given."""
    if "learners" not in project.memo:
        found: list[Scope] = []
        for call in optimizers(project):
            for item in held(project, call)[0]:
                owner = project.class_of(item.node, item.scope) if item.whole else None
                if owner is not None and all(owner is not f for f in found):
                    found.append(owner)
        for owner in found:  # what they are made of learns with them
            for method in owner.children:
                for inner in _inner_classes(project, method):
                    if all(inner is not f for f in found) and len(found) < 200:
                        found.append(inner)
        project.memo["learners"] = found
    answer: list[Scope] = project.memo["learners"]
    return answer


def _inner_classes(project: Project, method: Scope) -> Iterator[Scope]:
    if method.kind != "function" or method.name not in ("__init__", "setup", "build"):
        return
    for call in project.calls_by_scope.get(method, ()):
        target = project.resolve(call.node.func, call.scope)
        if target is not None and target.kind == "class" and any(target is m for m in modules(project)):
            yield target


def parts(project: Project, owner: Scope) -> dict[str, Call]:
    """The attributes of a module that are layers or modules with parameters of their own, with their constructor."""
    found: dict[str, Call] = {}
    for name, bindings in owner.attributes.items():
        for binding in bindings:
            if binding.value is None or binding.kind != "assign":
                continue
            node = ast.copy_location(ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load()), binding.value)
            method = binding.scope
            for call in constructors(project, node, method):
                if has_parameters(project, call):
                    found.setdefault(name, call)
                    break
    return found


def has_parameters(project: Project, call: Call, depth: int = 0) -> bool:
    """True for the constructor of a layer or module that surely has parameters."""
    full = project.called(call)
    if full.startswith("torch.nn.") and "functional" not in full and not full.startswith("torch.nn.init"):
        if call.name in ("Sequential", "ModuleList"):
            inner = [a for arg in call.node.args for a in ast.walk(arg) if isinstance(a, ast.Call)]
            return depth < 4 and any(has_parameters(project, Call(a, call.scope), depth + 1) for a in inner)
        return call.name[:1].isupper() and not WITHOUT.match(call.name) and call.name not in ("Parameter", "Module")
    target = project.resolve(call.node.func, call.scope)
    return (
        target is not None
        and target.kind == "class"
        and any(target is m for m in modules(project))
        and (
            bool(
                re.search(
                    r"nn\.(Linear|Conv|Embedding|LSTM|GRU|Parameter|LayerNorm|Sequential|Transformer|Multihead)|Parameter\(",
                    written(target.node),
                )
            )
        )
    )


def speaks_of_freezing(project: Project) -> bool:
    """True where the program freezes parameters on purpose, or loads some that it may keep as they are."""
    return bool(
        re.search(
            r"requires_grad_?\(?\s*=?\s*\(?False|load_state_dict|from_pretrained|pretrained=True|weights=|torch\.hub|timm\.",
            source(project),
        )
    )


def builds(project: Project, node: ast.expr, scope: Scope) -> list[Call]:
    """The constructors with parameters behind ``node``."""
    return [c for c in made(project, node, scope) if has_parameters(project, c)]
