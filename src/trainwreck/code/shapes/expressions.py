"""Expressions of the shape reading: names, indices, operators, and calls of layers, objects and functions."""

from __future__ import annotations

import ast

from trainwreck.code.calls import Call, default_of, last_name
from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.shapes import data
from trainwreck.code.shapes.asked import Asked
from trainwreck.code.shapes.domain import (
    ANY,
    MANY,
    UNKNOWN,
    Clash,
    Instance,
    Items,
    Layer,
    Shape,
    Value,
    joined,
    size,
)
from trainwreck.code.shapes.functions import BINARY, KEEPS, computed
from trainwreck.code.shapes.joins import CREATES, created, multiplied, stacked
from trainwreck.code.shapes.layers import applied
from trainwreck.code.shapes.losses import LOSSES, checked
from trainwreck.code.shapes.patterns import matched
from trainwreck.code.shapes.reading import MAX_DEPTH, MAX_STEPS, Frame, Spent, Statements, arithmetic, compared, left
from trainwreck.code.values import values

SELF_LIKE = ("to", "cuda", "cpu", "half", "float", "double", "bfloat16", "train", "eval", "requires_grad_", "compile")
CONTAINERS = ("Sequential", "ModuleList")


class Reading(Statements):
    """One question: a budget, and the clashes that were found."""

    def __init__(self, project: Project) -> None:
        self.project, self.found, self.steps = project, [], 0
        self.total: list[int] = left(project)
        self._globals: dict[int, Value] = {}
        self._running: list[Scope] = []

    def report(self, clash: Clash) -> None:
        self.found.append(clash)

    def value(self, node: ast.expr, frame: Frame) -> Value:
        self.steps += 1
        self.total[0] -= 1
        if self.steps > MAX_STEPS or self.total[0] < 0:
            raise Spent
        match node:
            case ast.Constant():
                return UNKNOWN if node.value is Ellipsis else node.value
            case ast.Name():
                return self._name(node, frame)
            case ast.Attribute():
                return self._attribute(node, frame)
            case ast.Call():
                return self._call(node, frame)
            case ast.Tuple():
                return tuple(self._spread(node.elts, frame))
            case ast.List():
                return Items(self._spread(node.elts, frame))
            case ast.BinOp():
                return self._operator(node, frame)
            case ast.Subscript():
                return self._subscript(node, frame)
            case ast.UnaryOp():
                return self._unary(node, frame)
            case ast.Compare():
                return self._compare(node, frame)
            case ast.BoolOp():
                found = [self.value(v, frame) for v in node.values]
                if all(isinstance(v, bool) for v in found):
                    return all(found) if isinstance(node.op, ast.And) else any(found)
                return UNKNOWN
            case ast.IfExp():
                test = self.value(node.test, frame)
                if isinstance(test, bool) or test is None:
                    return self.value(node.body if test else node.orelse, frame)
                return joined(self.value(node.body, frame), self.value(node.orelse, frame))
            case ast.ListComp() if len(node.generators) == 1 and not node.generators[0].ifs:
                return self._comprehension(node, frame)
            case ast.NamedExpr():
                known = self.value(node.value, frame)
                self.store(node.target, known, frame)
                return known
            case ast.Starred() | ast.Await():
                return self.value(node.value, frame)
        return UNKNOWN

    def _spread(self, nodes: list[ast.expr], frame: Frame) -> list[Value]:
        found: list[Value] = []
        for node in nodes:
            value = self.value(node, frame)
            if isinstance(node, ast.Starred):
                items = self.iterated(value)
                found += items if items is not None else [MANY]
            else:
                found.append(value)
        return found

    def _comprehension(self, node: ast.ListComp, frame: Frame) -> Value:
        generator = node.generators[0]
        items = self.iterated(self.value(generator.iter, frame))
        if items is None or len(items) > MAX_DEPTH * 4:
            return UNKNOWN
        inner = Frame(frame.scope, dict(frame.names), frame.instance, None, frame.depth)
        found = []
        for item in items:
            self.store(generator.target, item, inner)
            found.append(self.value(node.elt, inner))
        return Items(found)

    # ------------------------------------------------------------------ names
    def _name(self, node: ast.Name, frame: Frame) -> Value:
        if node.id in frame.names:
            return frame.names[node.id]
        bindings = self.project.lookup(node.id, frame.scope)
        if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].scope.kind != "module":
            return UNKNOWN
        binding = bindings[0]
        if binding.value is None or binding.path or id(binding) in self._globals:
            return self._globals.get(id(binding), UNKNOWN)
        self._globals[id(binding)] = UNKNOWN
        if frame.depth < MAX_DEPTH:
            outer = Frame(binding.scope, {}, None, None, frame.depth + 1)
            self._globals[id(binding)] = self.value(binding.value, outer)
        return self._globals[id(binding)]

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        base = self.value(node.value, frame)
        if isinstance(base, Shape):
            if node.attr == "shape":
                return UNKNOWN if base.open else tuple(UNKNOWN if d is None else d for d in base.dims)
            if node.attr == "T":
                return Shape(base.dims[::-1], False, base.by) if not base.open else ANY
            if node.attr in ("ndim",):
                return UNKNOWN if base.open else len(base.dims)
            return base if node.attr in ("data", "real", "values") else UNKNOWN
        if isinstance(base, Instance):
            return base.attributes.get(node.attr, UNKNOWN) if node.attr not in data.rebound(self.project) else UNKNOWN
        if isinstance(base, Layer) and node.attr == "weight" and base.name == "Linear":
            return Shape((size(base.get("out_features", 1)), size(base.get("in_features", 0))), False, base.call)
        if base is UNKNOWN and isinstance(node.value, ast.Name) and node.value.id not in ("self", "cls"):
            known = values(self.project, node, frame.scope)
            if len(known) == 1 and len(self.project.bindings(node, frame.scope)) <= 1:
                return known[0].value if isinstance(known[0].value, int | str) else UNKNOWN
        return UNKNOWN

    # ------------------------------------------------------------------ operators
    def _operator(self, node: ast.BinOp, frame: Frame) -> Value:
        one, other = self.value(node.left, frame), self.value(node.right, frame)
        if isinstance(one, Shape) and isinstance(other, Shape):
            asked = Asked("add", one, [other], {}, Call(_as_call(node), frame.scope), self.report)
            return multiplied(asked, other) if isinstance(node.op, ast.MatMult) else computed(asked)
        for shape, rest in ((one, other), (other, one)):
            if isinstance(shape, Shape):
                return shape if isinstance(rest, int | float) and not isinstance(node.op, ast.MatMult) else ANY
        return arithmetic(node.op, one, other)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.value(node.operand, frame)
        if isinstance(value, Shape):
            return value
        if isinstance(node.op, ast.USub) and isinstance(value, int | float) and not isinstance(value, bool):
            return -value
        return not value if isinstance(node.op, ast.Not) and isinstance(value, bool) else UNKNOWN

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        found = [self.value(v, frame) for v in (node.left, *node.comparators)]
        if len(found) != 2:
            return UNKNOWN
        if any(isinstance(v, Shape) for v in found) and not isinstance(
            node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn
        ):
            shapes = [v for v in found if isinstance(v, Shape)]
            return shapes[0] if len(shapes) == 1 else ANY
        if any(isinstance(v, Shape | Instance | Layer) for v in found):
            if isinstance(node.ops[0], ast.Is | ast.IsNot) and found[1] is None:
                return isinstance(node.ops[0], ast.IsNot)
            return UNKNOWN
        return compared(node.ops[0], found[0], found[1])

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        base = self.value(node.value, frame)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            owner = self.value(node.value.value, frame)
            place = self.value(node.slice, frame) if not isinstance(node.slice, ast.Slice) else UNKNOWN
            if isinstance(owner, Shape) and isinstance(place, int):
                known = owner.dim(place)
                return UNKNOWN if known is None else known
        if isinstance(base, tuple | Items):
            items = list(base.items) if isinstance(base, Items) else list(base)
            if MANY in items:
                return UNKNOWN
            if isinstance(node.slice, ast.Slice):
                ends = [self.value(p, frame) if p is not None else None for p in (node.slice.lower, node.slice.upper)]
                if node.slice.step is None and all(p is None or isinstance(p, int) for p in ends):
                    part = items[ends[0] : ends[1]]
                    return Items(part) if isinstance(base, Items) else tuple(part)
                return UNKNOWN
            at = self.value(node.slice, frame)
            return items[at] if isinstance(at, int) and -len(items) <= at < len(items) else UNKNOWN
        if isinstance(base, Layer) and base.name in CONTAINERS:
            at = self.value(node.slice, frame) if not isinstance(node.slice, ast.Slice) else UNKNOWN
            inner = data.layers_of(base)
            return (
                inner[at] if inner is not None and isinstance(at, int) and -len(inner) <= at < len(inner) else UNKNOWN
            )
        return data.indexed(self, base, node.slice, frame) if isinstance(base, Shape) else UNKNOWN

    # ------------------------------------------------------------------ calls
    def _call(self, node: ast.Call, frame: Frame) -> Value:
        call = Call(node, frame.scope)
        args = self._spread(node.args, frame)
        options = {k.arg: self.value(k.value, frame) for k in node.keywords if k.arg is not None}
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        name = last_name(node.func)
        if isinstance(receiver, ast.Call) and last_name(receiver.func) == "super" and name == "__init__":
            return self._base_init(frame, args, options)
        full = self.project.dotted(node.func, frame.scope)
        if name == "Parameter" and args:
            return args[0]
        if full.startswith("torch.nn.") and name[:1].isupper() and ".functional" not in full:
            if MANY in args and name not in CONTAINERS:
                args = [*args[: args.index(MANY)], *[UNKNOWN] * 12]
            return Layer(name, call, tuple(args), options)
        if full.startswith(("torch.", "numpy.", "einops.", "math.")) or name in CREATES or full in data.SOURCES:
            found = self._library(full, name, call, args, options)
            if found is not None:
                return found
        callee = self.value(node.func, frame) if not isinstance(node.func, ast.Attribute) else self._method(node, frame)
        if isinstance(callee, Layer | Instance):
            return self.called(callee, args, options, frame, call)
        if receiver is not None:
            base = self.value(receiver, frame)
            if isinstance(base, Instance) and (method := self.project.find_method(base.owner, name)) is not None:
                return self.run(method, args, options, base, frame)
            done = data.method(self, base, name, call, args, options)
            if done is not None:
                return done
        target = self.project.resolve(node.func, frame.scope)
        if target is not None and target.kind == "function" and target.owner is None:
            return self.run(target, args, options, None, frame)
        if target is not None and target.kind == "class":
            return self.built(target, call, args, options, frame)
        return data.builtin(self, name, args) if isinstance(node.func, ast.Name) else UNKNOWN

    def _method(self, node: ast.Call, frame: Frame) -> Value:
        """The layer or object that an attribute holds (``self.fc(x)``), else ``UNKNOWN``."""
        assert isinstance(node.func, ast.Attribute)
        base = self.value(node.func.value, frame)
        return self._attribute(node.func, frame) if isinstance(base, Instance) else UNKNOWN

    def _library(self, full: str, name: str, call: Call, args: list[Value], options: dict[str, Value]) -> Value | None:
        """A function of torch, numpy or einops; None where it is none of those that are known."""
        if full in data.SOURCES:
            return data.source(self.project, full, call, data.sampled(self, args), options)
        asked = Asked(
            name, args[0] if args and isinstance(args[0], Shape) else ANY, args[1:], options, call, self.report
        )
        if full.startswith("einops.") and name in ("rearrange", "reduce", "repeat") and len(args) > 1:
            if not isinstance(args[1], str):
                return ANY
            shape, kind, problem = matched(args[1], asked.shape, options)
            if problem:
                asked.clash(kind, problem)
            return shape
        if name in LOSSES and full.startswith("torch.nn.functional."):
            return checked(name, args, options, call, self.report)
        if name in ("cat", "concat", "concatenate", "stack", "vstack", "hstack", "column_stack"):
            parts = self.iterated(args[0]) if args else None
            along = options.get("dim", options.get("axis", args[1] if len(args) > 1 else 0))
            if parts is None or name in ("vstack", "hstack", "column_stack"):
                return ANY
            return stacked(parts, along, asked, new=name == "stack")
        made_of_sizes = name in CREATES or name in ("eye", "arange", "linspace", "randperm")
        if made_of_sizes and (full.startswith(("torch.", "numpy.")) or "size" in options):
            return created(name, args, options, call, full.startswith("numpy.") or not full.startswith("torch."))
        if name == "einsum":
            return ANY
        if args and isinstance(args[0], Shape) and full.startswith(("torch.", "numpy.")):
            done = computed(asked)
            return done if done is not UNKNOWN else (UNKNOWN if name not in KEEPS | BINARY else ANY)
        if name in ("tensor", "as_tensor", "array", "asarray", "from_numpy", "FloatTensor", "LongTensor") and args:
            return data.literal_shape(args[0], call)
        return None

    def called(
        self,
        callee: Layer | Instance,
        args: list[Value],
        options: dict[str, Value],
        frame: Frame,
        at: Call | None = None,
    ) -> Value:
        """What calling a layer or an object gives; ``at`` is the place of the call."""
        if isinstance(callee, Instance):
            method = self.project.find_method(callee.owner, "forward") or self.project.find_method(
                callee.owner, "__call__"
            )
            return self.run(method, args, options, callee, frame) if method is not None else UNKNOWN
        if callee.name in LOSSES:
            return checked(callee.name, args, {**callee.options, **options}, at or callee.call, self.report)
        if callee.name == "Sequential":
            inner = data.layers_of(callee)
            flowing: Value = args[0] if args else UNKNOWN
            for part in inner if inner is not None else ():
                known = isinstance(part, Layer | Instance)
                flowing = self.called(part, [flowing], {}, frame) if known else UNKNOWN
            return flowing if inner is not None else UNKNOWN
        return applied(callee, args, self.report)

    def run(
        self, function: Scope, args: list[Value], options: dict[str, Value], instance: Instance | None, frame: Frame
    ) -> Value:
        """What a function of the program returns for these arguments."""
        if frame.depth >= MAX_DEPTH or self._running.count(function) > 1 or function.yields:
            return UNKNOWN
        node = function.node
        if not isinstance(node, FunctionNode) or any(last_name(d) not in data.HARMLESS for d in node.decorator_list):
            return UNKNOWN
        names: dict[str, Value] = {}
        params = function.positional
        bound_self = instance is not None and function.owner is not None and params[:1] == ["self"]
        given = [instance, *args] if bound_self else args
        cut = given.index(MANY) if MANY in given else None
        for place, name in enumerate(params):
            if cut is not None and place >= cut:
                names[name] = options.get(name, UNKNOWN)
            elif place < len(given):
                names[name] = given[place]
            else:
                names[name] = options.get(name, self._default(function, name, frame))
        for name in function.params[len(params) :]:
            names[name] = options.get(name, self._default(function, name, frame))
        for rest in (node.args.vararg, node.args.kwarg):
            if rest is not None:
                names[rest.arg] = UNKNOWN
        inner = Frame(function, names, instance, [], frame.depth + 1)
        if instance is not None:
            instance.executed.add(id(function))
        self._running.append(function)
        self.block(node.body, inner)
        self._running.pop()
        found = inner.returned or []
        result: Value = found[0] if found else None
        for other in found[1:]:
            result = joined(result, other)
        return result

    def _default(self, function: Scope, name: str, frame: Frame) -> Value:
        node = default_of(function.node, name) if isinstance(function.node, FunctionNode) else None
        if node is None:
            return UNKNOWN
        return self.value(node, Frame(function.parent or function, {}, None, None, frame.depth + 1))

    def built(
        self, owner: Scope, call: Call | None, args: list[Value], options: dict[str, Value], frame: Frame
    ) -> Value:
        """An object of a class of the program, after its ``__init__``."""
        instance = Instance(owner, call)
        init = self.project.find_method(owner, "__init__")
        if init is not None:
            if frame.depth >= MAX_DEPTH or init in self._running:
                return UNKNOWN
            if call is not None and call.open_ended:
                args, options = [UNKNOWN] * len(args), dict.fromkeys(init.params, UNKNOWN)
            self.run(init, args, options, instance, frame)
        data.forget_rewritten(self.project, instance)
        return instance

    def _base_init(self, frame: Frame, args: list[Value], options: dict[str, Value]) -> Value:
        instance, owner = frame.instance, frame.scope.owner
        if instance is None or owner is None:
            return None
        for base in list(self.project.bases(owner))[1:]:
            init = base.method("__init__")
            if init is not None:
                self.run(init, args, options, instance, frame)
                break
        return None

    def element(self, node: ast.expr, frame: Frame) -> Value:
        return data.element(self, self.value(node, frame))


def _as_call(node: ast.BinOp) -> ast.Call:
    """An operator as a place with a call's type, for saying where it stands."""
    return ast.copy_location(ast.Call(node, [], []), node)
