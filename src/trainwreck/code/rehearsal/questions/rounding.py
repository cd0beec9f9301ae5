"""Are the updates of weights larger than what their type can hold?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.bounds import origin
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, External, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer

CASTS = frozenset(["to", "bfloat16", "float", "double", "half", "type"])
ADAPTIVE = 2e-4
"""Adam moves a weight by about its rate. A bf16 weight of 0.05 keeps steps of 2e-4 and more (2**-8 of it, halved)."""
PLAIN = 0.3
"""Rate of SGD over (1 - momentum) with gradients of about 1e-3 (a norm of 1 over a million weights, or 0.2 over fifty
thousand): the step is then below 3e-4."""
ADAMS = frozenset(["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop"])


def lost_in_bfloat16(run: Rehearsing) -> Iterator[Answer]:
    """Weights in bfloat16 that one of torch's optimizers moves in steps which mostly round to nothing."""
    start = min((e.serial for e in run.tape if e.name == "backward"), default=0)
    casts = [e for e in run.tape if e.serial < start and e.name in CASTS and _dtype(e) and is_module(e.subject)]
    last: dict[int, Event] = {}
    for cast in casts:
        for param in run.parameters(cast.subject)[0]:
            last[id(param)] = cast
    for optimizer in [o for o in run.objects if is_optimizer(o)]:
        if not _small(optimizer):
            continue
        held, _ = run.optimized(optimizer)
        kinds = {id(last[id(p)]): last[id(p)] for p in held if id(p) in last and p.trainable is not False}
        if len(kinds) != 1 or not all(id(p) in last for p in held):
            continue
        cast = next(iter(kinds.values()))
        if _dtype(cast) == "bfloat16" and not cast.maybe and cast.place is not None:
            text = f"updates with a rate of {optimizer.get('lr', 1):g} are mostly rounded away in bf16 weights"
            yield Answer(_chosen(run, cast), text, tuple(p for p in (optimizer.place,) if p is not None))


def _dtype(event: Event) -> str:
    """The type that a module is cast to; empty where only a device is given."""
    if event.name in ("bfloat16", "half", "double", "float"):
        return event.name
    given: tuple[Value, ...] = (*event.args, *event.options.values())
    return next((v.name for v in given if isinstance(v, External) and v.dotted.startswith("torch.")), "")


def _small(optimizer: Obj) -> bool:
    """True for the plain optimizers of torch at a rate whose steps bf16 does not keep."""
    rate = optimizer.get("lr", 1, 1e-3)
    if not optimizer.kind.startswith("torch.optim.") or not isinstance(rate, int | float):
        return False
    if optimizer.name in ADAMS:
        return 0 < rate <= ADAPTIVE
    momentum = optimizer.get("momentum", 2, 0.0)
    if optimizer.name != "SGD" or not isinstance(momentum, int | float) or not 0 <= momentum < 1:
        return False
    return 0 < rate / (1 - momentum) <= PLAIN


def _chosen(run: Rehearsing, cast: Event) -> Place:
    """Where the type is written: under the name that the cast is given, else the cast itself."""
    assert cast.place is not None
    node, scope = cast.place
    arguments = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    for argument in arguments:
        written = isinstance(argument, ast.Attribute) and ast.unparse(argument).startswith("torch.")
        if isinstance(argument, ast.Name | ast.Attribute | ast.Subscript) and not written:
            return origin(run.project, argument, scope) or cast.place
    return cast.place
