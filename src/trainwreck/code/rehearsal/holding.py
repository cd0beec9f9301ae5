"""What modules and optimizers hold: parameters with their names, groups, copies."""

from __future__ import annotations

from typing import Any

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal.classes import Classes
from trainwreck.code.rehearsal.domain import (
    LEAF,
    UNKNOWN,
    Frame,
    Items,
    Node,
    Obj,
    Place,
    Table,
    Value,
    candidates,
    is_module,
)
from trainwreck.code.rehearsal.parameters import PARAMETERS, shape_of_own

SCHEDULER = pattern(r"(^|\.)(lr_scheduler\.[A-Z]\w*|get_\w*schedule\w*|\w*LRScheduler|get_scheduler)$")


class Holding(Classes):
    """Lists parameters of modules and of optimizers, and copies objects."""

    def own_parameters(self, obj: Obj) -> dict[str, Node]:
        """Parameters that a layer of torch makes itself (``weight``, ``bias``), made when first asked for."""
        if obj.own is None:
            obj.own = {}
            kind = layer_kind(obj)
            for name in PARAMETERS.get(kind.rpartition(".")[2], ()):
                if name == "bias" and obj.options.get("bias") is False:
                    continue
                obj.own[name] = self.node(
                    "param", (), obj.place, grad=True, shape=shape_of_own(obj, name), owner=obj, name=name
                )
                obj.own[name].trainable = True
        return obj.own

    def set_attribute(self, base: Value, name: str, value: Value, place: Place) -> None:
        """As of any object; what is given to a layer of torch as its ``weight`` is what it computes with from now."""
        super().set_attribute(base, name, value, place)
        if not isinstance(base, Obj) or not is_module(base) or name not in (own := self.own_parameters(base)):
            return
        now = base.attributes.get(name)
        if isinstance(now, Node):
            own[name] = now
        elif now is None:
            own.pop(name)

    def submodules(self, obj: Value, *, deep: bool, prefix: str = "") -> list[tuple[str, Obj]]:
        """The module itself first (if ``deep``), then those in its attributes, lists and dicts, each once."""
        found: list[tuple[str, Obj]] = []
        seen: set[int] = set()

        def visit(value: Value, name: str, depth: int) -> None:
            for one in candidates(value):
                if isinstance(one, Obj) and is_module(one) and id(one) not in seen and depth < 12:
                    seen.add(id(one))
                    found.append((name, one))
                    if deep or depth == 0:
                        for key, inner in list(one.attributes.items()):
                            visit(inner, f"{name}.{key}" if name else key, depth + 1)

        visit(obj, prefix, 0)
        return found if deep else found[1:]

    def parameters(self, obj: Value) -> tuple[list[Node], bool]:
        """The parameters of a module with their dotted names, and whether these are all."""
        found: list[Node] = []
        complete = isinstance(obj, Obj) and is_module(obj)
        seen: set[int] = set()
        for name, module in self.submodules(obj, deep=True):
            if module.cls is None and module.name not in PARAMETERS and module.name not in _CONTAINERS:
                complete = False
            for key, value in [*self.own_parameters(module).items(), *module.attributes.items()]:
                for param in candidates(value):
                    held = (
                        param
                        if isinstance(param, Node) and param.op == "param" and LEAF not in param.attributes
                        else None
                    )
                    if held is not None and id(held) not in seen:
                        seen.add(id(held))
                        if not held.name or held.name == key:
                            held.name = f"{name}.{key}" if name else key
                        found.append(held)
            if module.cls is not None and any("PreTrained" in b for b in module.cls.external()):
                complete = False
            for value in module.attributes.values():
                if isinstance(value, Node) and value.unknown:
                    complete = False
        if not isinstance(obj, Obj) or not is_module(obj):
            found.append(self.opaque_parameters(obj))
        return found, complete

    def named(self, obj: Value) -> list[tuple[str, Node]]:
        """The parameters of a module, each once, by the names that they have seen from it."""
        found: list[tuple[str, Node]] = []
        seen: set[int] = set()
        for name, module in self.submodules(obj, deep=True):
            for key, value in [*self.own_parameters(module).items(), *module.attributes.items()]:
                known = isinstance(value, Node) and (id(value) in seen or LEAF in value.attributes)
                if isinstance(value, Node) and value.op == "param" and not known:
                    seen.add(id(value))
                    found.append((f"{name}.{key}" if name else key, value))
        return found

    def opaque_parameters(self, value: Value) -> Node:
        """Stands for the parameters of something that is not known."""
        node = self.node("opaque", (value,), None)
        node.grad = True
        return node

    def groups(self, optimizer: Obj) -> Items:
        """The parameter groups of an optimizer: ``Table`` of ``params`` (an ``Items``) and options each."""
        if optimizer.groups is None:
            place = optimizer.place
            assert place is not None
            optimizer.groups = self.grouped(optimizer.get("params", 0, UNKNOWN), place, Frame(place[1], {}))
        return optimizer.groups

    def grouped(self, given: Value, place: Place, frame: Frame) -> Items:
        given = next((c for c in candidates(given) if c is not None), UNKNOWN)
        if isinstance(given, Table):
            given = Items([given])
        if isinstance(given, Node) and given.op != "param":
            return Items([Table({"params": Items([given], True)}, True)], True)
        items, more = (
            (list(given.items), given.more) if isinstance(given, Items) else self.elements(given, place, frame)
        )
        if any(isinstance(i, Table) for i in items):
            groups: list[Value] = []
            for item in items:
                if isinstance(item, Table):
                    inner = item.entries.get("params", UNKNOWN)
                    if isinstance(inner, Node):
                        held = Items([inner], inner.op != "param")
                    elif isinstance(inner, Items):
                        held = inner
                    else:
                        held = Items(*self.elements(inner, place, frame))
                    groups.append(Table({**item.entries, "params": held}, item.more))
                else:
                    groups.append(Table({"params": Items([item], True)}, True))
            return Items(groups, more)
        flat: list[Value] = []
        for item in items:
            flat.append(item[1] if isinstance(item, tuple) and len(item) == 2 else item)
        return Items([Table({"params": Items(flat, more)})], False)

    def optimized(self, optimizer: Obj) -> tuple[list[Node], bool]:
        """The parameters that an optimizer holds now, and whether these are all."""
        groups = self.groups(optimizer)
        found: list[Node] = []
        complete = not groups.more
        for group in groups.items:
            params = group.entries.get("params") if isinstance(group, Table) else None
            if not isinstance(params, Items):
                complete = False
                continue
            complete = complete and not params.more
            for param in params.items:
                if isinstance(param, Node) and param.op == "param":
                    found.append(param)
                else:
                    complete = False
        return found, complete

    def parser_defaults(self, parser: Any) -> dict[str, Value]:
        """The table of defaults of an ``ArgumentParser``."""
        table = parser.attributes.setdefault("defaults", Table({}))
        entries: dict[str, Value] = table.entries
        return entries

    def copied(self, value: Value, seen: dict[int, Value]) -> Value:
        """A deep copy: objects and parameters are new ones."""
        if id(value) in seen:
            return seen[id(value)]
        match value:
            case Obj():
                made = self.thing(value.kind, value.args, dict(value.options), value.place)
                made.cls, made.training, made.copy_of = value.cls, value.training, value
                seen[id(value)] = made
                made.attributes = {k: self.copied(v, seen) for k, v in value.attributes.items()}
                made.own = {k: self.copied(v, seen) for k, v in value.own.items()} if value.own is not None else None
                return made
            case Node() if value.op == "param":
                node = self.node("param", (value,), value.place, shape=value.shape, grad=True, name=value.name)
                node.trainable = value.trainable
                node.attributes |= {k: v for k, v in value.attributes.items() if k == LEAF}
                seen[id(value)] = node
                return node
            case Node() if value.op in ("state", "state_dict"):
                return self.node("clone", (value,), value.place, grad=False, shape=value.shape, name=value.name)
            case Items():
                listed = seen[id(value)] = Items([], value.more, value.kind)
                listed.items = [self.copied(v, seen) for v in value.items]
                return listed
            case Table():
                table = seen[id(value)] = Table({}, value.more)
                table.entries = {k: self.copied(v, seen) for k, v in value.entries.items()}
                return table
            case tuple():
                return tuple(self.copied(v, seen) for v in value)
        return value


_CONTAINERS = frozenset(["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "DataParallel",
                         "DistributedDataParallel", "AveragedModel"])  # fmt: skip


def layer_kind(obj: Obj) -> str:
    """The dotted name of torch's layer that ``obj`` is, or derives from with parameters of its own."""
    if obj.cls is None:
        return obj.kind if obj.kind.startswith("torch.nn.") else ""
    return next((b for b in obj.cls.external() if b.startswith("torch.nn.") and b.rpartition(".")[2] in PARAMETERS), "")


def is_optimizer(value: Value) -> bool:
    if not isinstance(value, Obj):
        return False
    kinds = [value.kind] if value.cls is None else value.cls.external()
    return any(
        (k.startswith(("torch.optim.", "torch_optimizer.", "bitsandbytes.optim.", "lion_pytorch.", "apex.optimizers."))
         and "lr_scheduler" not in k and "swa_utils" not in k) or k in ("transformers.Adafactor", "transformers.AdamW")
        for k in kinds
    )  # fmt: skip


def is_scheduler(value: Value) -> bool:
    if not isinstance(value, Obj):
        return False
    kinds = [value.kind] if value.cls is None else value.cls.external()
    return any(SCHEDULER.search(k) for k in kinds)
