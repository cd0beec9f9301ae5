"""Modules of torch: their parameters, and the methods of every module."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import (
    UNKNOWN,
    Bound,
    Class,
    External,
    Function,
    Items,
    Node,
    Obj,
    Table,
    Value,
    is_module,
)
from trainwreck.code.rehearsal.library import NOTHING, function, method
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.rehearsal.state import MAX_PARAMETERS

SELF = ("to", "cuda", "cpu", "half", "float", "double", "bfloat16", "compile", "share_memory", "type", "to_empty")


@method("module", *SELF)
def _self(run: Rehearsing, asked: Asked) -> Value:
    run.event(asked.name, asked.receiver, asked.args, asked.options, asked.place)
    return asked.receiver


@method("module", "parameters", "named_parameters", "buffers", "named_buffers")
def _parameters(run: Rehearsing, asked: Asked) -> Value:
    if asked.name.endswith("buffers"):
        return Items([("?", UNKNOWN)] if asked.name.startswith("named") else [UNKNOWN], True)
    found, complete = run.parameters(asked.receiver)
    names = {id(param): name for name, param in run.named(asked.receiver)}
    if asked.get("recurse", 0 if asked.name == "parameters" else 1, True) is False and complete:
        found = [p for p in found if "." not in names.get(id(p), ".")]
    if asked.name == "named_parameters":
        return Items([(names.get(id(p)) or p.name or run.node("text"), p) for p in found], not complete, "parameters")
    return Items(list(found), not complete, "parameters")


@method("module", "modules", "named_modules", "children", "named_children")
def _modules(run: Rehearsing, asked: Asked) -> Value:
    inner = run.submodules(asked.receiver, deep=asked.name.endswith("modules"))
    if asked.name.startswith("named"):
        return Items([(name, module) for name, module in inner])
    return Items([module for _, module in inner])


@method("module", "train", "eval")
def _mode(run: Rehearsing, asked: Asked) -> Value:
    wanted = asked.get("mode", 0, True) if asked.name == "train" else False
    mode = run.truth(wanted)
    if asked.name == "train" and isinstance(wanted, Node) and wanted.op == "attribute" and wanted.name == "training":
        mode = True  # given back as it was
    own = _own_train(asked.receiver) if asked.name == "eval" else None
    if own is not None:
        run.call(own, [False], {}, asked.place, asked.frame)
        return asked.receiver
    _switch(run, asked, asked.receiver, mode, wanted, set())
    run.event(asked.name, asked.receiver, (mode,), {}, asked.place)
    return asked.receiver


def _own_train(module: Value) -> Bound | None:
    """``train`` of a class of the program, which torch calls for ``eval`` too, and for a module within another one."""
    found = module.cls.find("train") if isinstance(module, Obj) and module.cls is not None else None
    return Bound(found, module) if isinstance(found, Function) else None


def _switch(run: Rehearsing, asked: Asked, module: Obj, mode: bool | None, wanted: Value, seen: set[int]) -> None:
    """Put a module and those in it into a mode, as ``Module.train`` does."""
    seen.add(id(module))
    run.switch(module, mode)
    for _, inner in run.submodules(module, deep=False):
        own = _own_train(inner)
        if id(inner) in seen or len(seen) > MAX_PARAMETERS:
            continue
        if own is not None:
            seen.add(id(inner))
            run.call(own, [wanted if mode is None else mode], {}, asked.place, asked.frame)
        else:
            _switch(run, asked, inner, mode, wanted, seen)


@method("module", "requires_grad_")
def _requires_grad(run: Rehearsing, asked: Asked) -> Value:
    wanted = asked.get("requires_grad", 0, True)
    event = run.event("requires_grad", asked.receiver, (wanted,), {}, asked.place)
    for param in run.parameters(asked.receiver)[0]:
        param.trainable = wanted if isinstance(wanted, bool) and not run.maybe else None
        param.writes.append(event)
    return asked.receiver


@method("module", "apply")
def _apply(run: Rehearsing, asked: Asked) -> Value:
    for _, module in run.submodules(asked.receiver, deep=True):
        run.call(asked.get("fn", 0), [module], {}, asked.place, asked.frame)
    return asked.receiver


@method("module", "register_buffer", "register_parameter", "add_module", "register_module")
def _register(run: Rehearsing, asked: Asked) -> Value:
    name, value = asked.get("name", 0), asked.get("tensor", 1, asked.get("param", 1, asked.get("module", 1)))
    if isinstance(name, str):
        if isinstance(value, Node) and asked.name == "register_buffer":
            buffer = run.node("buffer", (value,), asked.place, shape=value.shape, grad=False, name=name)
            value = buffer
        run.set_attribute(asked.receiver, name, value, asked.place)
    return None


@method("module", "state_dict")
def _state(run: Rehearsing, asked: Asked) -> Value:
    made: Value = run.node("state_dict", (asked.receiver,), asked.place, grad=False)
    held, complete = run.parameters(asked.receiver)
    if complete and len(held) <= MAX_PARAMETERS:
        states = {
            name: run.node("state", (param,), asked.place, grad=False, shape=param.shape, name=name)
            for name, param in run.named(asked.receiver)
        }
        made = Table(
            dict(states), any(m.name.startswith("BatchNorm") for _, m in run.submodules(asked.receiver, deep=True))
        )
    run.event("state_dict", asked.receiver, asked.args, asked.options, asked.place, result=made)
    return made


@method("module", "load_state_dict")
def _load(run: Rehearsing, asked: Asked) -> Value:
    event = run.event("load_state_dict", asked.receiver, asked.args, asked.options, asked.place)
    for param in run.parameters(asked.receiver)[0]:
        param.writes.append(event)
    return run.node("load_state_dict", asked.given, asked.place)


@method("module", "zero_grad")
def _zero_grad(run: Rehearsing, asked: Asked) -> Value:
    held, complete = run.parameters(asked.receiver)
    state = {"held": held, "complete": complete}
    run.event("zero_grad", asked.receiver, asked.args, asked.options, asked.place, state=state)
    return None


@method("module", "forward")
def _forward(run: Rehearsing, asked: Asked) -> Value:
    return run.call_object(asked.receiver, asked.args, asked.options, asked.place, asked.frame)


@method("module", "append", "insert", "extend")
def _append(run: Rehearsing, asked: Asked) -> Value:
    """Of a ``ModuleList`` or ``Sequential``."""
    holder: Obj = asked.receiver
    new = run.elements(asked.args[0], asked.place, asked.frame)[0] if asked.name == "extend" else asked.args[-1:]
    for value in new:
        holder.attributes[str(len(holder.attributes))] = value
    return holder


@method("module", "items", "keys", "values")
def _views(run: Rehearsing, asked: Asked) -> Value:
    """Of a ``ModuleDict``."""
    pairs = list(asked.receiver.attributes.items())
    return Items([pair if asked.name == "items" else pair[0] if asked.name == "keys" else pair[1] for pair in pairs])


@method("module", "super.__init__")
def _init(run: Rehearsing, asked: Asked) -> Value:
    run.base_init(asked.receiver, asked.args, asked.options)
    return None


@method("module", "super.train", "super.eval")
def _super_mode(run: Rehearsing, asked: Asked) -> Value:
    asked.name = asked.name.removeprefix("super.")
    return _mode(run, asked)


@method("module", "super.forward", "super.__call__")
def _super_forward(run: Rehearsing, asked: Asked) -> Value:
    return run.library_object(asked.receiver, asked)


@function("torch.nn.Parameter", "torch.nn.parameter.Parameter")
def _parameter(run: Rehearsing, asked: Asked) -> Value:
    data = asked.get("data", 0, UNKNOWN)
    shape = data.shape if isinstance(data, Node) else UNKNOWN.shape
    made = run.node("param", (data,), asked.place, dict(asked.options), shape=shape, grad=True)
    wanted = asked.get("requires_grad", 1, True)
    made.trainable = wanted if isinstance(wanted, bool) else None
    return made


@function("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict", "torch.nn.ParameterList",
          "torch.nn.ParameterDict")  # fmt: skip
def _container(run: Rehearsing, asked: Asked) -> Value:
    made = run.thing(asked.full, asked.args, asked.options, asked.place)
    given = asked.args[0] if asked.args else None
    if isinstance(given, Table):
        made.attributes.update({str(k): v for k, v in given.entries.items()})
        return made
    if asked.name == "Sequential":
        parts = list(asked.args)
    else:
        parts = run.elements(given, asked.place, asked.frame)[0] if given is not None else []
    for number, part in enumerate(parts):
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str):
            made.attributes[part[0]] = part[1]
        elif isinstance(part, Obj | Node | Class | External):
            made.attributes[str(number)] = part
    return made


@function("torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel",
          "torch.distributed.fsdp.FullyShardedDataParallel")  # fmt: skip
def _wrapped(run: Rehearsing, asked: Asked) -> Value:
    inner = asked.get("module", 0)
    made = run.thing(asked.full, asked.args, asked.options, asked.place)
    made.attributes["module"] = inner
    run.event("wrap", inner, asked.args, asked.options, asked.place, full=asked.full, result=made)
    return made


@function("torch.nn.init.*")
def _initialised(run: Rehearsing, asked: Asked) -> Value:
    event = run.event(asked.name, None, asked.args, asked.options, asked.place, full=asked.full)
    value = asked.get("tensor", 0)
    while isinstance(value, Node) and value.op in ("data", "detach") and value.inputs:
        value = value.inputs[0]
    if isinstance(value, Node):
        value.writes.append(event)
    return asked.get("tensor", 0)


@function("torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm", "torch.nn.utils.parametrizations.weight_norm",
          "torch.nn.utils.parametrizations.spectral_norm", "torch.nn.utils.parametrizations.orthogonal",
          "torch.nn.SyncBatchNorm.convert_sync_batchnorm")  # fmt: skip
def _parametrised(run: Rehearsing, asked: Asked) -> Value:
    return asked.args[0] if asked.args and is_module(asked.args[0]) else UNKNOWN


@function("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def _with_other_weights(run: Rehearsing, asked: Asked) -> Value:
    """The module is called, and computes with the weights that it is given by their names."""
    module, given = asked.get("module", 0), asked.get("parameter_and_buffer_dicts", 1, asked.get("tensors", 1))
    args, options = asked.get("args", 2, ()), asked.get("kwargs", 3)
    tables = [given] if isinstance(given, Table) else list(given) if isinstance(given, tuple) else []
    if not isinstance(module, Obj) or not is_module(module) or not tables:
        return NOTHING
    if not all(isinstance(t, Table) and not t.more for t in tables):
        return NOTHING
    known = {key: value for t in tables for key, value in t.entries.items()}
    held = {name: (inner, key) for name, inner, key in _weights(run, module)}
    if not known or not known.keys() <= held.keys():
        return NOTHING
    before: list[tuple[dict[str, Value], str, Value]] = []
    for name, value in known.items():
        inner, key = held[name]
        table = inner.own if inner.own is not None and key in inner.own else inner.attributes
        before.append((table, key, table[key]))
        table[key] = value
    try:
        inputs = list(args) if isinstance(args, tuple) else args.items if isinstance(args, Items) else [args]
        keywords = options.entries if isinstance(options, Table) else {}
        return run.call(module, inputs, dict(keywords), asked.place, asked.frame)
    finally:
        for table, key, value in before:
            table[key] = value


def _weights(run: Rehearsing, module: Obj) -> Iterator[tuple[str, Obj, str]]:
    """The names of the parameters and buffers of a module, with where each is held and as what."""
    for name, inner in run.submodules(module, deep=True):
        for key, value in [*run.own_parameters(inner).items(), *inner.attributes.items()]:
            if isinstance(value, Node) and value.op in ("param", "buffer"):
                yield f"{name}.{key}" if name else key, inner, key
