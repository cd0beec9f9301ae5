"""Classes and modules of the program: how objects are made, what their attributes are, what an import gives."""

from __future__ import annotations

import ast
import math

from trainwreck.code.rehearsal.calling import Calling
from trainwreck.code.rehearsal.domain import (
    UNKNOWN,
    Bound,
    Class,
    External,
    Frame,
    Function,
    Method,
    Node,
    Obj,
    Place,
    Table,
    Value,
    candidates,
    is_module,
)
from trainwreck.code.rehearsal.storing import EXACT_TURNS
from trainwreck.code.scopes import Scope

CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "tau": math.tau}


class Classes(Calling):
    """Makes objects, finds attributes, runs modules."""

    def define_class(self, node: ast.ClassDef, frame: Frame) -> None:
        scope = self.scope_of(node, frame)
        bases = [self.value(b, frame) for b in node.bases if not isinstance(b, ast.Starred)]
        bases = [b.cls if isinstance(b, Obj) and b.cls is not None else b for b in bases]
        made = Class(node.name, scope, bases, {}, frame)
        inner = Frame(scope, made.names, frame, "class")
        self.block(node.body, inner)
        for value in made.names.values():
            if isinstance(value, Function) and value.owner is None:
                value.owner = made
        names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
        made.dataclass = any(n.rpartition(".")[2] in ("dataclass", "define", "frozen", "dataclasses") for n in names)
        frame.names[node.name] = made

    def build(
        self, cls: Class, args: list[Value], options: dict[str, Value], place: Place, *, more: bool = False
    ) -> Value:
        """An object of a class of the program, after its ``__init__``."""
        external = cls.external()
        kind = external[0] if external else cls.name
        obj = Obj(kind, cls, tuple(args), dict(options), {}, place, self.stack, self.tick())
        obj.turns, obj.maybe = self.turns, self.maybe
        self.objects.append(obj)
        init = cls.find("__init__")
        if isinstance(init, Function):
            self.run(init, [obj, *args], options, place, obj, more=more)
        elif self._record(cls):
            self._fields(cls, obj, args, options, place)
        elif is_module(obj):
            self.base_init(obj, args, options)
        elif "builtins.dict" in external:
            obj.attributes.update(options)  # a dict whose entries are read as attributes, in most programs
        return obj

    def _record(self, cls: Class) -> bool:
        named = any(b.rpartition(".")[2] in ("NamedTuple", "TypedDict", "BaseModel", "Struct") for b in cls.external())
        return named or any(c.dataclass for c in cls.mro())

    def _fields(self, cls: Class, obj: Obj, args: list[Value], options: dict[str, Value], place: Place) -> None:
        """What a dataclass's generated ``__init__`` does."""
        order: dict[str, Value] = {}
        for owner in reversed(list(cls.mro())):
            for statement in getattr(owner.scope.node, "body", ()):
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    order[statement.target.id] = owner.names.get(statement.target.id, UNKNOWN)
        for number, (name, default) in enumerate(order.items()):
            if number < len(args):
                value = args[number]
            elif name in options:
                value = options[name]
            elif isinstance(default, Obj) and default.kind == "dataclasses.field":
                factory = default.options.get("default_factory")
                value = (
                    self.call(factory, [], {}, place, cls.frame)
                    if factory is not None
                    else default.options.get("default", UNKNOWN)
                )
            else:
                value = default
            obj.attributes[name] = value
        after = cls.find("__post_init__")
        if isinstance(after, Function):
            self.run(after, [obj], {}, place, obj)

    def base_init(self, obj: Obj, args: list[Value], options: dict[str, Value]) -> None:
        """``__init__`` of a class of a library: what it was given stays with the object (``Sequential``'s layers)."""
        kinds = [b.rpartition(".")[2] for b in (obj.cls.external() if obj.cls is not None else ())]
        if args and any(k in ("Sequential", "ModuleList") for k in kinds):
            parts = args if "Sequential" in kinds else self.list_of(args[0])
            obj.attributes.update({str(n): part for n, part in enumerate(parts)})
            obj.args = tuple(args)
        elif any(k.endswith(("Linear", "Conv1d", "Conv2d", "Embedding", "LayerNorm")) for k in kinds):
            obj.args, obj.options = tuple(args), dict(options)

    def super_of(self, node: ast.Call, frame: Frame) -> Value:
        at: Frame | None = frame
        while at is not None and at.function is None:
            at = at.parent
        while at is not None and at.function is not None and at.function.owner is None and at.parent is not None:
            at = at.parent
        if at is None or at.function is None or at.function.owner is None:
            return UNKNOWN
        return Obj("builtins.super", None, (at.receiver, at.function.owner))

    # ------------------------------------------------------------------ attributes
    def get_attribute(self, base: Value, name: str, place: Place) -> Value:
        match base:
            case Node() if base.op == "either":
                known = [c for c in candidates(base) if c is not None]
                if known and all(isinstance(c, Node) for c in known):
                    return self.library_attribute(base, name, place)
                if len(known) > EXACT_TURNS or not known:
                    return UNKNOWN
                if any(not isinstance(c, Obj) for c in known) and len(known) > 1:
                    return Method(name, base)
                return self._joined([self.get_attribute(c, name, place) for c in known], place)
            case Frame():
                return base.names.get(name, UNKNOWN)
            case External():
                if name in CONSTANTS and base.dotted in ("math", "torch", "numpy", "np"):
                    return CONSTANTS[name]
                return base.name if name == "__name__" else External(f"{base.dotted}.{name}")
            case Obj() if base.kind == "builtins.super":
                return self._super_attribute(base, name)
            case Obj():
                if name in base.attributes:
                    return base.attributes[name]
                if base.cls is not None:
                    found = base.cls.find(name)
                    if isinstance(found, Function):
                        if found.kind == "property":
                            return self.run(found, [base], {}, place, base)
                        return Bound(found, base)
                    if found is not None or any(name in c.names for c in base.cls.mro()):
                        return found
                    fallback = base.cls.find("__getattr__")
                    if isinstance(fallback, Function):
                        return self.run(fallback, [base, name], {}, place, base)
                if name == "__class__":
                    return base.cls if base.cls is not None else External(base.kind)
                if name == "__dict__":
                    return Table(base.attributes)
                return self.library_attribute(base, name, place)
            case Class():
                found = base.find(name)
                if isinstance(found, Function) and found.kind == "class":
                    return Bound(found, base)
                if found is None and name == "apply":
                    return Method(name, base)
                return found if found is not None else (base.name if name == "__name__" else Method(name, base))
        return self.library_attribute(base, name, place)

    def _super_attribute(self, base: Obj, name: str) -> Value:
        receiver, owner = base.args
        chain = list(receiver.cls.mro()) if isinstance(receiver, Obj) and receiver.cls is not None else []
        after = chain[chain.index(owner) + 1 :] if owner in chain else list(owner.mro())[1:]
        for cls in after:
            if isinstance(cls.names.get(name), Function):
                return Bound(cls.names[name], receiver)
            if name in cls.names:
                return cls.names[name]
        return Method(f"super.{name}", receiver)

    # ------------------------------------------------------------------ modules
    def import_module(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                dotted = alias.name if alias.asname else name
                module = self.module(dotted, frame.scope)
                frame.names[name] = module if module is not None else External(dotted)
            return
        base = "." * node.level + (node.module or "")
        module = self.module(base, frame.scope) if base.strip(".") else None
        for alias in node.names:
            name = alias.asname or alias.name
            if module is not None:
                if alias.name == "*":
                    frame.names |= {k: v for k, v in module.names.items() if not k.startswith("_")}
                    continue
                if alias.name in module.names:
                    frame.names[name] = module.names[alias.name]
                    continue
            inner = self.module(f"{base}.{alias.name}".replace("..", "."), frame.scope)
            frame.names[name] = inner if inner is not None else External(f"{base}.{alias.name}".lstrip("."))

    def module(self, dotted: str, scope: Scope) -> Frame | None:
        """The names of a module of the program after its body ran; None for one of a library."""
        top = self.project.module(dotted, scope)
        return self.module_frame(top) if top is not None else None

    def module_frame(self, top: Scope, name: str = "") -> Frame:
        path = top.module.path
        if path not in self.modules:
            frame = self.modules[path] = Frame(top, {"__name__": name or "module"}, None, "module")
            stack, turns = self.stack, self.turns
            self.stack, self.turns = (), ()
            try:
                self.block(top.module.tree.body, frame)
            finally:
                self.stack, self.turns = stack, turns
        return self.modules[path]
