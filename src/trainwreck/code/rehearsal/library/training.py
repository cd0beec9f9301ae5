"""What trains: optimizers, schedules, gradient scalers, backward, clipping, modes of autograd, checkpoints."""

from __future__ import annotations

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import UNKNOWN, Items, Node, Obj, Table, Value
from trainwreck.code.rehearsal.graph import reached
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.library import function, method
from trainwreck.code.rehearsal.library.files import same
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.shapes.domain import ANY


@method("tensor", "backward")
def _backward(run: Rehearsing, asked: Asked) -> Value:
    event = run.event("backward", asked.receiver, asked.args, asked.options, asked.place)
    event.state["reached"] = reached(asked.receiver)
    _call_gradient_hooks(run, asked, event.state["reached"])
    return None


@method("tensor", "register_post_accumulate_grad_hook")
def _gradient_hook(run: Rehearsing, asked: Asked) -> Value:
    """Called in each backward, once the gradient of the parameter is there: an optimizer of its own may step."""
    hooks = run.memo.setdefault("gradient hooks", {})
    hooks.setdefault(id(asked.receiver), []).append(asked.get("hook", 0, UNKNOWN))
    return run.node("handle", (asked.receiver,), asked.place, grad=False)


def _call_gradient_hooks(run: Rehearsing, asked: Asked, params: Value) -> None:
    hooks = run.memo.get("gradient hooks", {})
    for param in params if hooks and isinstance(params, list | tuple) else ():
        for hook in hooks.get(id(param), ()):
            run.call(hook, [param], {}, asked.place, asked.frame)


@function("torch.autograd.backward")
def _backward_function(run: Rehearsing, asked: Asked) -> Value:
    loss = asked.get("tensors", 0, UNKNOWN)
    event = run.event("backward", loss, asked.args[1:], asked.options, asked.place)
    event.state["reached"] = reached(loss)
    return None


@function("torch.autograd.grad")
def _grad(run: Rehearsing, asked: Asked) -> Value:
    loss = asked.get("outputs", 0, UNKNOWN)
    wanted = asked.get("inputs", 1, UNKNOWN)
    event = run.event("grad", loss, asked.args, asked.options, asked.place, full=asked.full)
    event.state["reached"] = reached(loss)
    items, more = run.elements(wanted, asked.place, asked.frame) if not isinstance(wanted, Node) else ([wanted], False)
    kept = run.truth(asked.get("create_graph", 4, False)) is not False  # unknown: a gradient may pass
    shapes = [i.shape if isinstance(i, Node) and "is_grads_batched" not in asked.options else ANY for i in items]
    pairs = zip(items, shapes, strict=True)
    made = [run.node("grad", (loss, item), asked.place, grad=kept, shape=shape) for item, shape in pairs]
    return Items(list(made), True) if more else tuple(made)


@method("optimizer", "step", "zero_grad")
def _optimizer(run: Rehearsing, asked: Asked) -> Value:
    closure = asked.get("closure", 0)
    result: Value = None
    hooks = _hooks(run, asked.receiver) if asked.name == "step" else []
    _call_hooks(run, asked, asked.receiver, [h for name, h in hooks if "pre" in name])
    if asked.name == "step" and closure is not None:
        result = run.call(closure, [], {}, asked.place, asked.frame)
    run.event(asked.name, asked.receiver, asked.args, asked.options, asked.place, state=held_by(run, asked.receiver))
    _call_hooks(run, asked, asked.receiver, [h for name, h in hooks if "post" in name])
    return result


@method("optimizer", "register_step_pre_hook", "register_step_post_hook")
def _hooked(run: Rehearsing, asked: Asked) -> Value:
    """``hook(optimizer, args, kwargs)`` is called around each ``step`` from now on."""
    hooks = run.memo.setdefault("step hooks", {})
    hooks.setdefault(id(asked.receiver), []).append((asked.name, asked.get("hook", 0, UNKNOWN)))
    run.event(asked.name, asked.receiver, asked.args, asked.options, asked.place)
    return run.node(asked.name, asked.given, asked.place, grad=False)


@function("torch.optim.optimizer.register_optimizer_step_pre_hook",
          "torch.optim.optimizer.register_optimizer_step_post_hook")  # fmt: skip
def _hooked_all(run: Rehearsing, asked: Asked) -> Value:
    run.memo.setdefault("step hooks", {}).setdefault(0, []).append((asked.name, asked.get("hook", 0, UNKNOWN)))
    return run.node(asked.name, asked.given, asked.place, grad=False)


def _hooks(run: Rehearsing, optimizer: Value) -> list[tuple[str, Value]]:
    """Those of every optimizer, and its own."""
    hooks = run.memo.get("step hooks", {})
    return [*hooks.get(0, ()), *hooks.get(id(optimizer), ())]


def _call_hooks(run: Rehearsing, asked: Asked, optimizer: Value, hooks: list[Value]) -> None:
    for hook in hooks:
        run.call(hook, [optimizer, (), Table({}, True)], {}, asked.place, asked.frame)


def held_by(run: Rehearsing, optimizer: Value) -> dict[str, Value]:
    """What an optimizer holds now: ``held`` (parameters) and ``complete`` (these are all)."""
    if not is_optimizer(optimizer):
        return {}
    held, complete = run.optimized(optimizer)
    return {"held": held, "complete": complete, "known": all_parameters(run.groups(optimizer))}


def all_parameters(groups: Items) -> bool:
    """True if every element of every group is a parameter that is known."""
    for group in groups.items:
        params = group.entries.get("params") if isinstance(group, Table) else None
        items = params.items if isinstance(params, Items) else None
        if items is None or not all(isinstance(p, Node) and p.op == "param" for p in items):
            return False
    return bool(groups.items)


BASES = frozenset(["torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"])


@method("optimizer", "super.__init__")
def _own_optimizer(run: Rehearsing, asked: Asked) -> Value:
    """Of an optimizer that the program writes itself: each group gets the defaults that it does not name."""
    optimizer: Obj = asked.receiver
    run.event(asked.name, optimizer, asked.args, asked.options, asked.place)
    defaults, params = asked.get("defaults", 1), asked.get("params", 0)
    if optimizer.cls is None or params is None or not BASES & set(optimizer.cls.external()):
        return None
    optimizer.groups = run.grouped(params, asked.place, asked.frame)
    for group in optimizer.groups.items:
        if isinstance(group, Table) and isinstance(defaults, Table):
            group.entries = {**defaults.entries, **group.entries}
    return None


@method("optimizer", "add_param_group")
def _add_group(run: Rehearsing, asked: Asked) -> Value:
    run.event("add_param_group", asked.receiver, asked.args, asked.options, asked.place)
    groups = run.groups(asked.receiver)
    found = run.grouped(asked.get("param_group", 0, UNKNOWN), asked.place, asked.frame)
    groups.items += found.items
    groups.more = groups.more or found.more
    return None


@method("optimizer", "state_dict")
@method("scheduler", "state_dict")
@method("scaler", "state_dict")
def _state(run: Rehearsing, asked: Asked) -> Value:
    made = run.node("state_dict", (asked.receiver,), asked.place, grad=False)
    run.event("state_dict", asked.receiver, asked.args, asked.options, asked.place, result=made)
    return made


@method("scheduler", "step", "load_state_dict", "get_last_lr")
@method("optimizer", "load_state_dict")
@method("scaler", "update", "unscale_", "load_state_dict", "get_scale", "is_enabled")
def _noted(run: Rehearsing, asked: Asked) -> Value:
    made = run.node(asked.name, asked.given, asked.place, grad=False)
    run.event(asked.name, asked.receiver, asked.args, asked.options, asked.place, result=made)
    return made


@method("scaler", "scale")
def _scale(run: Rehearsing, asked: Asked) -> Value:
    run.event("scale", asked.receiver, asked.args, asked.options, asked.place)
    return run.node("scale", asked.args, asked.place, owner=asked.receiver)


@method("scaler", "step")
def _scaler_step(run: Rehearsing, asked: Asked) -> Value:
    optimizer = asked.get("optimizer", 0)
    run.event("scaler_step", asked.receiver, asked.args, asked.options, asked.place)
    hooks = _hooks(run, optimizer)
    _call_hooks(run, asked, optimizer, [h for name, h in hooks if "pre" in name])
    run.event("step", optimizer, (), {}, asked.place, state={**held_by(run, optimizer), "scaler": asked.receiver})
    _call_hooks(run, asked, optimizer, [h for name, h in hooks if "post" in name])
    return None


@function("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm")
def _clip(run: Rehearsing, asked: Asked) -> Value:
    made = run.node(asked.name, asked.args, asked.place, dict(asked.options), full=asked.full, grad=False)
    run.event("clip", None, asked.args, asked.options, asked.place, full=asked.full, result=made)
    return made


@function("torch.no_grad", "torch.inference_mode", "torch.enable_grad", "torch.set_grad_enabled", "torch.autocast",
          "torch.cuda.amp.autocast", "torch.amp.autocast", "torch.autograd.no_grad", "torch.autograd.enable_grad",
          "torch.autograd.set_detect_anomaly", "torch.autograd.profiler.profile")  # fmt: skip
def _mode(run: Rehearsing, asked: Asked) -> Value:
    from trainwreck.code.rehearsal.domain import Function

    given = asked.args[0] if asked.args else None
    if isinstance(given, Function):
        given.no_grad, given.with_grad = asked.name in ("no_grad", "inference_mode"), asked.name == "enable_grad"
        return given
    if asked.name == "set_grad_enabled":
        known = run.truth(given)
        run.event("set_grad_enabled", None, (known,), {}, asked.place)
        run.grad_mode = known is not False
    return run.thing(asked.full, asked.args, asked.options, asked.place)


@function("torch.set_default_dtype")
def _default_type(run: Rehearsing, asked: Asked) -> Value:
    run.event("set_default_dtype", None, asked.args, asked.options, asked.place)
    return None


@function("torch.is_grad_enabled")
def _grad_mode(run: Rehearsing, asked: Asked) -> Value:
    return run.grad_mode


@function("torch.save", "torch.load", "torch.manual_seed", "numpy.random.seed", "random.seed",
          "torch.cuda.manual_seed_all", "torch.cuda.manual_seed", "torch.set_num_threads", "torch.distributed.barrier",
          "torch.distributed.all_reduce", "torch.distributed.all_gather", "torch.distributed.broadcast",
          "torch.distributed.reduce", "torch.distributed.init_process_group")  # fmt: skip
def _effect(run: Rehearsing, asked: Asked) -> Value:
    made = run.node(asked.name, asked.given, asked.place, full=asked.full, grad=False)
    if asked.name == "load" and asked.args:
        saved = [e for e in run.tape if e.full == "torch.save" and len(e.args) > 1 and e.args[1] is asked.args[0]]
        saved = saved or [e for e in run.tape if e.full == "torch.save" and same(e.get("f", 1), asked.args[0])]
        places = {id(e.place[0]) for e in saved if e.place is not None}
        if len(places) == 1 and isinstance(saved[-1].args[0], Table):
            held = saved[-1].args[0]
            loaded = _loaded(run, held, asked)
            run.event("load", None, asked.args, asked.options, asked.place, full=asked.full, result=loaded)
            return loaded
        states = [e.args[0] for e in saved if isinstance(e.args[0], Node) and e.args[0].op == "state_dict"]
        if len(places) == 1 and states:
            made = run.node("loaded", (states[-1],), asked.place, full=asked.full, grad=False)
    run.event(asked.name, None, asked.args, asked.options, asked.place, full=asked.full, result=made)
    return made


def _loaded(run: Rehearsing, saved: Table, asked: Asked) -> Table:
    """What comes back from a file, entry by entry; states of modules stay tables."""
    made: dict[Value, Value] = {}
    for key, value in saved.entries.items():
        if isinstance(value, Table):
            made[key] = _loaded(run, value, asked)
        else:
            made[key] = run.node("loaded", (value,), asked.place, name=str(key))
    return Table(made, saved.more)


@function("torch.utils.checkpoint.checkpoint")
def _checkpointed(run: Rehearsing, asked: Asked) -> Value:
    if not asked.args:
        return UNKNOWN
    return run.call(asked.args[0], asked.args[1:], {}, asked.place, asked.frame)


@function("torch.optim.swa_utils.AveragedModel")
def _averaged(run: Rehearsing, asked: Asked) -> Value:
    inner = asked.get("model", 0)
    made = run.thing(asked.full, asked.args, asked.options, asked.place)
    if isinstance(inner, Obj):
        made.attributes["module"] = run.copied(inner, {})
    return made
