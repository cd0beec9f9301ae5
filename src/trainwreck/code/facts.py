"""Short questions that many rules ask of calls, loops and functions: options, order, reach, what is held out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import OPTIMIZERS, Loop, constructors, loops, position
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.values import literal, values

HELD = pattern(
    r"(^|_|\.)[xyXY]?(va|val|valid|validation|dev|test|te|eval|holdout|held|heldout)(?=[^a-z]|$|loader|set|data|dl|ds)"
)
"""Names of evaluation data, with word borders."""
TEST = pattern(r"(^|_|\.)[xyXY]?(test|te|holdout)(?=[^a-z]|$|loader|set|data|dl|ds)")
TRAIN = pattern(r"(^|_|\.)[xyXY]?(train|tr|training)(?=[^a-z]|$|loader|set|data|dl|ds)")
BATCHNORMS = frozenset(["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm2d"])
DROPOUTS = frozenset(["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"])
LINEAR = frozenset(["Linear", "Conv1d", "Conv2d", "Conv3d", "LazyLinear"])
ENGINES = pattern(
    r"accelerat|lightning|deepspeed|ignite|fabric|fastai|catalyst|composer|horovod|colossalai|megatron", re.IGNORECASE
)
"""Frameworks that run parts of the training step themselves."""


def engine_in(project: Project, scope: Scope) -> bool:
    """True if the file of ``scope`` names a framework that runs parts of the step, kept for every file."""
    known: dict[str, bool] = project.memo.setdefault("engines", {})
    path = scope.module.path
    if path not in known:
        known[path] = bool(ENGINES.search(scope.module.text))
    return known[path]


def option(project: Project, call: Call, name: str, place: int | None = None) -> tuple[ast.expr, Scope] | None:
    """The argument of this name with its scope; what a literal ``**options`` brings counts."""
    value = call.argument(name, place)
    if value is not None:
        return value, call.scope
    for item in call.node.keywords:
        if item.arg is None and (found := _pairs(project, item.value, call.scope)) is not None:
            pairs, scope = found
            if name in pairs:
                return pairs[name], scope
    return None


def complete(project: Project, call: Call) -> bool:
    """True where every argument of ``call`` can be seen: no ``*args``, and ``**options`` only of literals."""
    if any(isinstance(a, ast.Starred) for a in call.node.args):
        return False
    return all(k.arg is not None or _pairs(project, k.value, call.scope) is not None for k in call.node.keywords)


def _pairs(project: Project, node: ast.expr, scope: Scope) -> tuple[dict[str, ast.expr], Scope] | None:
    """Keys and values of the one dict that ``node`` stands for, None where something may be added to it."""
    if isinstance(node, ast.Name):
        bindings = project.lookup(node.id, scope)
        if len(bindings) != 1 or bindings[0].value is None or bindings[0].path or bindings[0].kind != "assign":
            return None
        return _pairs(project, bindings[0].value, bindings[0].scope)
    if isinstance(node, ast.Call) and last_name(node.func) == "dict" and not node.args:
        if any(k.arg is None for k in node.keywords):
            return None
        return {k.arg: k.value for k in node.keywords if k.arg}, scope
    found = literal(project, node, scope)
    if found is None or not isinstance(found[0], ast.Dict):
        return None
    pairs: dict[str, ast.expr] = {}
    for key, value in zip(found[0].keys, found[0].values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return None
        pairs[key.value] = value
    return pairs, found[1]


def only(project: Project, at: tuple[ast.expr, Scope] | None) -> object:
    """The one constant that an option can be; ``...`` where it is unknown or several, None where there is no option."""
    if at is None:
        return None
    found = values(project, *at)
    return found[0].value if len(found) == 1 else ...


def is_torch(project: Project, call: Call) -> bool:
    """True if what is called was imported from torch."""
    return project.called(call).split(".", 1)[0] == "torch"


def text_of(project: Project, scope: Scope) -> str:
    """The code of a scope as written by ``ast.unparse`` (without comments), kept."""
    known: dict[Scope, str] = project.memo.setdefault("texts", {})
    if scope not in known:
        known[scope] = written(scope.node)
    return known[scope]


def source(project: Project) -> str:
    """The text of all modules."""
    if "source" not in project.memo:
        project.memo["source"] = "\n".join(w.top.module.text for w in project.walked.values())
    text: str = project.memo["source"]
    return text


def reach(project: Project, body: ast.AST, scope: Scope, depth: int = 3) -> Iterator[Call]:
    """Calls inside ``body`` and inside the functions of the project that these reach."""
    seen: set[int] = set()
    todo = [(body, scope, depth)]
    while todo:
        node, where, left = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                yield Call(inner, where)
                target = project.resolve(inner.func, where) if left else None
                if target is not None and target.kind == "function":
                    todo.append((target.node, target, left - 1))


def made(project: Project, node: ast.expr, scope: Scope) -> list[Call]:
    """The constructor calls behind ``node``, kept for every name."""
    known: dict[int, list[Call]] = project.memo.setdefault("made", {})
    if id(node) not in known:
        known[id(node)] = list(constructors(project, node, scope))
    return known[id(node)]


def made_once(project: Project, node: ast.expr, scope: Scope) -> set[int]:
    """``id`` of the constructor calls behind ``node`` that stand for one object each: what another function makes that
    is called from several places or in a loop is another one at each call."""
    return {id(c.node) for c in made(project, node, scope) if c.scope is scope or not _repeated(project, c.scope)}


def _repeated(project: Project, scope: Scope) -> bool:
    if scope.kind != "function":
        return False
    known: dict[Scope, bool] = project.memo.setdefault("repeated", {})
    if scope not in known:
        calls = project.callers(scope)
        known[scope] = len(calls) > 1 or any(_in_turns(project, c) for c in calls)
    return known[scope]


def _in_turns(project: Project, call: Call) -> bool:
    """True for a call in a loop or a comprehension of its function."""
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, FunctionNode | ast.Lambda):
            return False
        if isinstance(above, ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp):
            return True
        if isinstance(above, ast.GeneratorExp):
            return True
    return False


def made_names(project: Project, node: ast.expr, scope: Scope) -> set[str]:
    return {call.name for call in made(project, node, scope)}


def function_of(project: Project, node: ast.AST, scope: Scope) -> ast.AST:
    """The function (or module) that ``node`` stands in."""
    return next((a for a in project.ancestors(node, scope) if isinstance(a, FunctionNode | ast.Lambda)), scope.node)


def later(one: ast.AST, other: ast.AST) -> bool:
    """True if ``one`` is written after ``other``."""
    return position(one) > position(other)


def loop_over(project: Project, node: ast.AST, scope: Scope, pattern: re.Pattern[str]) -> ast.For | None:
    """The innermost ``for`` around ``node`` whose iterable names something that ``pattern`` finds."""
    for loop in loops(project, node, scope):
        if isinstance(loop, ast.For) and names_in(loop.iter, pattern):
            return loop
    return None


def names_in(node: ast.AST, pattern: re.Pattern[str]) -> bool:
    """True if a name or attribute in ``node`` fits ``pattern``."""
    return any(
        pattern.search(n.id if isinstance(n, ast.Name) else n.attr)
        for n in ast.walk(node)
        if isinstance(n, ast.Name | ast.Attribute)
    )


def names(node: ast.AST) -> set[str]:
    """Plain names that are read or written in ``node``."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def optimizers(project: Project) -> list[Call]:
    """Calls that build an optimizer of torch or of a package that is named like one."""
    if "optimizers" not in project.memo:
        found = []
        for call in project.calls(*sorted(OPTIMIZERS)):
            name = project.called(call)
            outside = project.resolve(call.node.func, call.scope) is None
            if outside and (".optim" in name or name.split(".")[0] in ("torch", "bitsandbytes", "lion_pytorch")):
                found.append(call)
        project.memo["optimizers"] = found
    calls: list[Call] = project.memo["optimizers"]
    return calls


def schedulers(project: Project) -> list[Call]:
    """Calls that build a scheduler of ``torch.optim.lr_scheduler``."""
    if "schedulers" not in project.memo:
        project.memo["schedulers"] = [
            Call(node, scope)
            for walked in project.walked.values()
            for node, scope in walked.calls
            if (
                last_name(node.func).endswith("LR")
                or last_name(node.func).startswith(("ReduceLROn", "CosineAnnealing"))
            )
            and "lr_scheduler" in project.called(Call(node, scope))
        ]
    calls: list[Call] = project.memo["schedulers"]
    return calls


def trains(project: Project) -> bool:
    """True if anything in the program runs a backward pass."""
    return bool(project.calls_by_name.get("backward") or project.calls_by_name.get("manual_backward"))


def network(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True if ``node`` is known to be a network: of a Module class of the project, of torch.nn or torchvision."""
    owner = project.class_of(node, scope)
    if owner is not None:
        return project.is_a(owner, "Module", "LightningModule", "PreTrainedModel")
    for call in made(project, node, scope):
        full = project.called(call)
        if full.startswith("torch.nn.") and not full.startswith(("torch.nn.functional", "torch.nn.Parameter")):
            return not call.name.endswith("Loss")
        if full.startswith(("torchvision.models.", "timm.create_model", "transformers.Auto")):
            return True
    return False


def bound_to(project: Project, call: Call) -> str:
    """The one name (``x`` or ``self.x``) that the result of ``call`` is assigned to, else empty."""
    statement = project.statement(call.node, call.scope)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.value is call.node:
        return written(statement.targets[0])
    if isinstance(statement, ast.AnnAssign) and statement.value is call.node:
        return written(statement.target)
    return ""


def in_loop(project: Project, node: ast.AST, scope: Scope) -> Loop | None:
    found = loops(project, node, scope)
    return found[0] if found else None


def guarded(project: Project, node: ast.AST, scope: Scope, pattern: re.Pattern[str]) -> bool:
    """True if an ``if`` around ``node`` in its function tests something that ``pattern`` finds, by whatever name."""
    for above in project.ancestors(node, scope):
        if isinstance(above, FunctionNode):
            return False
        if isinstance(above, ast.If | ast.IfExp) and pattern.search(_spelled_out(above.test, scope)):
            return True
    return False


def _spelled_out(test: ast.expr, scope: Scope) -> str:
    """``test`` as text, with the values that its plain names were given in ``scope`` or around it."""
    texts = [written(test)]
    for name in {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}:
        holder: Scope | None = scope
        while holder is not None and name not in holder.bindings:
            holder = holder.parent
        if holder is not None:
            texts += [written(b.value) for b in holder.bindings[name] if b.value is not None]
    return " ".join(texts)


def linear(project: Project, call: Call) -> bool:
    """True for the call of a layer object that is linear, or a stack that ends in one."""
    if call.name in LINEAR and is_torch(project, call):
        return True
    if isinstance(call.node.func, ast.Subscript):
        return _indexed_linear(project, call.node.func, call.scope)
    if not isinstance(call.node.func, ast.Name | ast.Attribute):
        return False
    layers = made(project, call.node.func, call.scope)
    return len(layers) == 1 and layers[0].name in LINEAR and is_torch(project, layers[0])


def _indexed_linear(project: Project, node: ast.Subscript, scope: Scope) -> bool:
    """True for ``self.layers[-1]`` of a list of layers that is written out and holds a linear layer there."""
    at = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
    if not isinstance(at, ast.Constant) or not isinstance(at.value, int):
        return False
    index = -at.value if isinstance(node.slice, ast.UnaryOp) else at.value
    for stack in made(project, node.value, scope):
        inner = stack.node.args[0] if stack.name == "ModuleList" and stack.node.args else None
        layers = inner.elts if isinstance(inner, ast.List) else stack.node.args if stack.name == "Sequential" else []
        if -len(layers) <= index < len(layers) and isinstance(layers[index], ast.Call):
            return last_name(layers[index]) in LINEAR
    return False


def halved(project: Project, model: str, before: Call) -> Call | None:
    """The call that turns the weights of ``model`` into fp16 before ``before``, in the same scope."""
    for call in project.calls("half", "to"):
        if call.scope is not before.scope or not later(before.node, call.node) or call.receiver is None:
            continue
        if call.name == "to" and not any(
            written(a) in ("torch.float16", "torch.half")
            for a in (*call.node.args, *(k.value for k in call.node.keywords))
        ):
            continue
        base = call.receiver
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
            base = base.func.value
        statement = project.statement(call.node, call.scope)
        own = (
            isinstance(statement, ast.Assign)
            and written(statement.targets[0]) == model
            and statement.value is call.node
        )
        if (own or isinstance(statement, ast.Expr)) and written(base) == model:
            return call
    return None


def refits(project: Project, kind: re.Pattern[str]) -> Iterator[tuple[Call, Call]]:
    """``fit_transform`` of held-out data by a transformation of this kind, with the one of the training data."""
    calls = [c for c in project.calls("fit_transform") if c.node.args and c.receiver is not None]
    for call in calls:
        held = call.node.args[0]
        if not names_in(held, HELD) or names_in(held, TRAIN) or call.receiver is None:
            continue
        makers = {c.name for c in made(project, call.receiver, call.scope) if kind.search(c.name)}
        for other in calls:
            if other.scope is not call.scope or other.receiver is None or not names_in(other.node.args[0], TRAIN):
                continue
            same = TRAIN.sub("", written(other.node.args[0])) == HELD.sub("", written(held))
            if makers & {c.name for c in made(project, other.receiver, other.scope)} and same:
                yield call, other
                break


def handlers(project: Project, also: tuple[str, ...] = ()) -> Iterator[tuple[ast.Try, ast.ExceptHandler, Scope]]:
    """Every ``try`` with a handler that catches anything (or ``also``) and neither raises nor leaves."""
    broad = ("Exception", "BaseException", *also)
    for walked in project.walked.values():
        if "except" not in walked.top.module.text:
            continue
        for scope in walked.scopes:
            for node in project.within(scope, ast.Try):
                assert isinstance(node, ast.Try)
                for handler in node.handlers:
                    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                    if handler.type is not None and not any(written(k) in broad for k in kinds):
                        continue
                    if not _leaves(handler):
                        yield node, handler, scope


_TELLING = frozenset(
    ["print", "info", "warning", "warn", "debug", "error", "str", "format", "write", "repr", "type", "empty_cache"]
)
_ENDING = frozenset(["exit", "_exit", "exception", "fail", "print_exc", "abort"])


def _leaves(handler: ast.ExceptHandler) -> bool:
    """True if the handler raises, returns, ends the run, tells the traceback, or does real work of its own."""
    for node in ast.walk(handler):
        if isinstance(node, ast.Raise | ast.Return | ast.Break | ast.Assign | ast.If):
            return True
        if isinstance(node, ast.Call) and last_name(node.func) in _ENDING:
            return True
        if isinstance(node, ast.Call) and last_name(node.func) not in (*_TELLING, "zero_grad"):
            return True
    return False


def working(tried: ast.Try, work: frozenset[str]) -> str | None:
    """The first call in the body of ``tried`` whose last name is one of ``work``."""
    for statement in tried.body:
        for node in ast.walk(statement):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in work:
                continue
            if not re.search("env|sched", written(node.func.value)):
                return f"{written(node.func)}()"
    return None
