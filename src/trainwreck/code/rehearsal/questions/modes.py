"""Is the network in training mode while it learns, and in evaluation mode while it is judged?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import dropwhile, takewhile

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Function, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, computed_with, graph, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, ids, lives, modules_under, steps
from trainwreck.code.rehearsal.questions.mode_places import among_batches, averaged
from trainwreck.code.rehearsal.state import line_of
from trainwreck.code.scopes import Scope

NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
DRAWN = ("bernoulli", "bernoulli_", "rand", "rand_like", "randn_like")
RECURRENT = ("LSTM", "GRU", "RNN")
NOISE = frozenset(
    ["randn", "rand", "normal", "randn_like", "rand_like", "randint", "linspace", "arange", "zeros", "ones"]
)


def moody(obj: Value) -> bool:
    """True for a layer that does something else in evaluation mode."""
    if not isinstance(obj, Obj) or obj.cls is not None:
        return False
    if "Dropout" in obj.name:
        return bool(obj.get("p", 0, 0.5) != 0)
    if obj.name in RECURRENT:
        layers = obj.get("num_layers", 2, 1)
        return isinstance(layers, int) and layers > 1 and bool(obj.options.get("dropout", 0) != 0)
    if obj.name == "MultiheadAttention":
        return bool(obj.get("dropout", 2, 0) != 0)
    if obj.name in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        return bool(obj.get("dropout", 3, 0.1) != 0)
    if obj.name in ("TransformerEncoder", "TransformerDecoder"):
        return moody(obj.get(obj.name.removeprefix("Transformer").lower() + "_layer", 0))
    return obj.name in NORMS


def _drops_by_hand(obj: Value) -> bool:
    """True for a module of the program whose forward calls a dropout function with ``self.training``, or draws a mask
    itself where that is so."""
    forward = obj.cls.find("forward") if isinstance(obj, Obj) and obj.cls is not None else None
    if not isinstance(forward, Function):
        return False
    calls = [n for n in ast.walk(forward.node) if isinstance(n, ast.Call)]
    if any(last_name(c.func) in DRAWN for c in calls):
        return any(isinstance(n, ast.If | ast.IfExp) and "self.training" in ast.unparse(n.test)
                   for n in ast.walk(forward.node))  # fmt: skip
    return any("dropout" in last_name(c.func).lower() and "self.training" in ast.unparse(c) for c in calls)


def _norm_only(layers: list[Obj]) -> bool:
    return all(layer.name in NORMS for layer in layers)


def eval_in_training(run: Rehearsing) -> Iterator[Answer]:
    """A loss that is learned from while layers that should be active are in evaluation mode.

    Not meant: frozen parts, and batch norms that are held back alone (their own ``eval``)."""
    told: set[int] = set()
    early: list[tuple[Event, Answer]] = []
    again: set[int] = set()
    for event in backwards(run):
        if not event.turns or not _used(run, event):
            continue
        trained = _moved_next(run, event)
        quiet: list[Event] = []
        loud = False
        inside = {id(n) for n in graph(event.subject) if n.grad}
        for forward in run.tape:
            if forward.serial > event.serial:
                break
            acts = forward.name == "forward" and (moody(forward.subject) or _drops_by_hand(forward.subject))
            if acts and id(forward.result) in inside:
                mode = forward.state.get("training")
                cause = _cause(run, forward) if mode is None else None
                if mode is False or (cause is not None and cause.maybe and cause.turns):
                    quiet.append(forward)
                else:
                    loud = True
        layers = [f.subject for f in quiet]
        if not quiet or (loud and _norm_only(layers)):
            continue
        cause = _cause(run, quiet[0])
        root = cause.subject if cause is not None else None
        mine = [p for m in modules_under(root) for p in run.own_parameters(m).values()] if root is not None else []
        if root is None or moody(root) or not any(id(p) in trained and p.trainable is not False for p in mine):
            continue
        if _norm_only(layers) and all(isinstance(m, Obj) and m.name in NORMS for m in [root]):
            continue
        if cause is not None and _norm_only(layers) and (_chosen(cause) or _all_frozen(run, layers)):
            continue  # the mode is an argument, or statistics and weights of the norms are both kept as they were
        place = cause.place if cause is not None else quiet[0].place
        if cause is not None and cause.turns:
            # left in a loop: training mode belongs to the turn of the outer loop, before that over the batches
            beside = among_batches(run, cause, event)
            place = beside or (_turn_start(event) if not cause.maybe else place)
            text = "evaluation mode is set here and still holds where the next gradients are computed"
            if not cause.maybe:
                text = "the network is still in evaluation mode in this turn: nothing sets training mode again"
        else:
            text = "evaluation mode is set before the training loop and never left"
        if place is None:
            continue
        answer = Answer(place, text, (event.place,) if event.place else ())
        if cause is not None and cause.place is not None and not cause.turns:
            early.append((cause, answer))
            continue
        if cause is not None and cause.place is not None:
            again.add(id(cause.place[0]))
        if line_of(place) not in told:
            told.add(line_of(place))
            yield answer
    for cause, answer in early:
        # a look at the data before the loop by the function that also judges inside it is told once, in the loop
        if cause.place is not None and id(cause.place[0]) not in again and line_of(answer.place) not in told:
            told.add(line_of(answer.place))
            yield answer


def _used(run: Rehearsing, event: Event) -> bool:
    """False for gradients that are cleared before any step: importances and saliencies, taken in evaluation mode."""
    found = lives(run)
    return bool(found.used_by.get(id(event))) or not any(found.used_by.values())


def _moved_next(run: Rehearsing, event: Event) -> set[int]:
    """What the steps after this backward move: another phase of the training may move other parts."""
    later = [e for e in run.tape if e.serial > event.serial and e.name in ("backward", "step")]
    later = list(dropwhile(lambda e: e.name == "backward", later))
    mine = [e for e in takewhile(lambda e: e.name == "step", later) if e in steps(run)]
    return {id(p) for s in mine or steps(run) for p in held(s)}


def _chosen(cause: Event) -> bool:
    """``model.train(not frozen)``: somebody decides about the mode."""
    call = cause.place[0] if cause.place is not None else None
    given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    return cause.name == "train" and bool(given) and not isinstance(given[0], ast.Constant)


def _all_frozen(run: Rehearsing, layers: list[Obj]) -> bool:
    """True if none of the layers has a weight that learns."""
    return not any(p.trainable is not False for layer in layers for p in run.own_parameters(layer).values())


def left_quiet(run: Rehearsing) -> Iterator[Answer]:
    """Evaluation mode that is set in a turn after its last backward, and still holds when the turn ends."""
    trained = {id(p) for s in steps(run) for p in held(s)}
    for event in run.tape:
        if event.name not in ("eval", "train") or event.args[:1] != (False,) or not event.turns or event.place is None:
            continue
        mine = [b for b in backwards(run) if b.turns and b.turns[-1] is event.turns[-1] and b.serial < event.serial]
        layers = [m for m in modules_under(event.subject) if moody(m)]
        params = run.parameters(event.subject)[0]
        alone = moody(event.subject) and _norm_only(layers)  # a norm that is held back by itself
        if not mine or not layers or alone or not any(id(p) in trained for p in params):
            continue
        later = [
            e
            for e in run.tape
            if e.serial > event.serial and e.name == "train" and e.args[:1] != (False,)
            and any(m is layers[0] for m in modules_under(e.subject))
        ]  # fmt: skip
        again = [e for e in later if e.turns[: len(event.turns)] == event.turns]
        active = [f for f in run.tape if f.name == "forward" and f.subject is layers[0] and f.serial < mine[-1].serial]
        first = [
            e
            for e in run.tape
            if e.name == "train" and e.args[:1] != (False,) and e.turns[-1:] and e.turns[-1] is event.turns[-1]
        ]
        if active and active[-1].state.get("training") is True and not again and not first and event.turns[-1].generic:
            text = "evaluation mode is set here, and the next turn learns in it"
            yield Answer(event.place, text, (mine[-1].place,) if mine[-1].place else ())
            return


def _turn_start(event: Event) -> Place:
    """Where training mode belongs: the beginning of the turn of the loop around the batches, or of its function."""
    batches = event.turns[-1]
    if len(event.turns) > 1 and event.turns[-2].scope is batches.scope:
        outer = event.turns[-2]
        body = getattr(outer.node, "body", [outer.node])
        return (body[0], outer.scope)
    return opening(batches.scope, (batches.node, batches.scope))


def opening(scope: Scope, fallback: Place) -> Place:
    """The first statement of a function where it is near ``fallback``, else the statement around ``fallback``."""
    body = getattr(scope.node, "body", None)
    if scope.kind != "function" or not isinstance(body, list):
        return fallback
    line = line_of(fallback)
    first = next((s for s in body if not _is_text(s)), body[0])
    if line - first.lineno <= NEAR:
        return (first, scope)
    around = [s for s in body if s.lineno <= line <= (s.end_lineno or s.lineno)]
    return (around[0], scope) if around else fallback


NEAR = 6
"""Lines from the beginning of a function within which its first statement stands for where a mode belongs."""


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _cause(run: Rehearsing, forward: Event) -> Event | None:
    """The last call that put the layer into evaluation mode."""
    found: Event | None = None
    for event in run.tape:
        if event.serial > forward.serial:
            break
        off = event.name == "eval" or (event.name == "train" and event.args[:1] == (False,))
        if off and any(m is forward.subject for m in modules_under(event.subject)):
            found = event
    return found


def train_in_eval(run: Rehearsing) -> Iterator[Answer]:
    """Results that are only looked at, from a network of this run whose layers are in training mode.

    Not meant: what feeds a later loss (targets, fakes, rollouts), what is made from noise, networks that are never
    put into evaluation mode because they have nothing to switch."""
    feeding = {id(n) for b in run.tape if b.name in ("backward", "grad") for v in [b.subject] for n in ancestors(v)}
    trained = averaged(run, {id(p) for s in steps(run) for p in held(s)})
    told: set[tuple[str, int]] = set()
    open_forwards = [e for e in run.tape if e.name == "forward"]
    for forward in open_forwards:
        results = list(parts(forward.result)) if isinstance(forward.result, Node | tuple) else []
        if forward.state.get("grad") is not False or not results or any(id(r) in feeding for r in results):
            continue
        if not isinstance(forward.subject, Obj) or moody(forward.subject) or inside_another(run, forward):
            continue
        active = [
            e.subject
            for e in open_forwards
            if forward.serial <= e.serial <= max(r.serial for r in results)
            and moody(e.subject)
            and e.state.get("training") is True
            and not _switched_alone(run, e)
        ]
        mine = ids(run.parameters(forward.subject)[0]) | computed_with(forward.result, forward.serial)
        if not active or not mine & trained or _kept_away(run, forward):
            continue
        if not any(s.serial < forward.serial for s in steps(run)):
            continue  # before anything was learned
        if _from_noise(forward) or forward.place is None or _learns_here(run, forward):
            continue
        drawn = sampled(run, forward)
        if drawn and not any(a.name in NORMS for a in active):
            continue  # dropout is kept on to sample predictions; statistics of their batches are never wanted
        what = "dropout" if any(a.name not in NORMS for a in active) else "batch statistics"
        place = forward.place
        teaches = any(_function(b) is _function(forward) for b in backwards(run))
        place = _switched_on(run, forward, active[0]) or (place if teaches else opening(place[1], place))
        if drawn:
            on = [e.place for e in run.tape if e.name == "train" and e.serial < forward.serial and e.place is not None]
            place = on[-1] if on else place
        key = (place[1].module.path, line_of(place))
        if key in told:
            continue
        told.add(key)
        yield Answer(place, f"{what} is in training mode while the network is only judged here", ())


def _switched_on(run: Rehearsing, forward: Event, layer: Obj) -> Place | None:
    """The call in the same function, and the same call of it, that puts the layer into training mode."""
    told = [e for e in run.tape if e.name in ("train", "eval") and e.serial < forward.serial and e.place is not None]
    told = [e for e in told if any(m is layer for m in modules_under(e.subject))]
    if not told or told[-1].name != "train" or _function(told[-1]) is not _function(forward):
        return None
    here = forward.place is not None and forward.place[1].kind == "function"
    return told[-1].place if here and told[-1].stack == forward.stack else None


def sampled(run: Rehearsing, forward: Event) -> bool:
    """True for several passes over the same input between two steps: what is wanted is how they differ.

    That is Monte-Carlo dropout (Gal and Ghahramani, arXiv:1506.02142)."""
    if any(_repeated(node) for node in parts(forward.args)):
        return True
    for other in run.tape:
        if other.name != "forward" or other is forward or other.subject is not forward.subject:
            continue
        if other.place is None or forward.place is None or other.place[0] is not forward.place[0]:
            continue
        same_call = [p[0] for p in other.stack] == [p[0] for p in forward.stack]
        if not same_call or not (_same_input(other, forward) or _same_batches(run, other, forward)):
            continue
        first, last = sorted((other.serial, forward.serial))
        if not any(first < s.serial < last for s in steps(run)):
            return True
    return False


def _same_input(one: Event, other: Event) -> bool:
    """True for passes over one value; elements of a list that is gone through may only look like one."""
    taken = {id(n) for turn in other.turns for n in parts(turn.over)}
    if any(id(n) in taken for a in other.args for n in parts(a)):
        return False
    return len(one.args) == len(other.args) > 0 and all(a is b for a, b in zip(one.args, other.args, strict=True))


def _same_batches(run: Rehearsing, one: Event, other: Event) -> bool:
    """True for two ways through the same loader: it is begun anew between them."""
    loaders = [{id(n.owner) for n in near(e.args, 30) if n.op == "batch" and n.owner is not None} for e in (one, other)]
    first, last = sorted((one.serial, other.serial))
    return loaders[0] == loaders[1] and any(
        e.name == "iterate" and id(e.subject) in loaders[0] and first < e.serial < last for e in run.tape
    )


def _repeated(node: Node) -> bool:
    """True for an input that is there many times along its first axis."""
    times = node.get("repeats", 1) if node.op == "repeat_interleave" else node.inputs[1] if len(node.inputs) > 1 else 1
    times = times[0] if isinstance(times, tuple) and times else times
    return node.op in ("repeat", "tile", "repeat_interleave") and times not in (1, -1)


def inside_another(run: Rehearsing, forward: Event) -> bool:
    """True if it runs inside the forward of another module of the program."""
    if "forwards-by-place" not in run.memo:
        table: dict[int, list[Event]] = {}
        for event in run.tape:
            if event.name == "forward" and event.place is not None and any(True for _ in parts(event.result)):
                table.setdefault(id(event.place[0]), []).append(event)
        run.memo["forwards-by-place"] = table
    known: dict[int, list[Event]] = run.memo["forwards-by-place"]
    end = max((n.serial for n in parts(forward.result)), default=forward.serial)
    return any(
        o.serial < forward.serial and max(n.serial for n in parts(o.result)) >= end
        for place in forward.stack
        for o in known.get(id(place[0]), ())
    )


def _learns_here(run: Rehearsing, forward: Event) -> bool:
    """True if it stands in the same turn of the innermost loop as a backward: a look at the training batch."""
    return bool(forward.turns) and any(
        b.turns[-1:] == forward.turns[-1:] and _function(b) is _function(forward) for b in backwards(run) if b.turns
    )


def _function(event: Event) -> object:
    return event.place[1] if event.place is not None else None


def _from_noise(forward: Event) -> bool:
    data = [n for n in ancestors(tuple(forward.args)) if not n.inputs and n.op != "param"]
    return any(n.op in NOISE for n in data) and all(n.op in NOISE or n.op == "counter" for n in data)


def _switched_alone(run: Rehearsing, forward: Event) -> bool:
    """True for a layer that was itself told to train, after its network was told to evaluate: dropout that is kept on
    to sample predictions (Gal and Ghahramani, arXiv:1506.02142)."""
    told = [e for e in run.tape if e.name == "train" and e.subject is forward.subject and e.serial < forward.serial]
    return bool(told) and "Dropout" in forward.subject.name


def _kept_away(run: Rehearsing, forward: Event) -> bool:
    """True if the result only goes into further parameters or is trained on in another way (averages, queues)."""
    results = {id(p) for p in parts(forward.result)}
    later = [e for e in run.tape if e.serial > forward.serial and e.name in ("copy_", "lerp_", "setitem", "add_")]
    return any(id(n) in results for event in later for n in ancestors(tuple(event.args)))


def without_no_grad(run: Rehearsing) -> Iterator[Answer]:
    """A loop of forwards whose graphs no backward uses, of a network that learns."""
    feeding = {id(n) for b in run.tape if b.name in ("backward", "grad") for n in ancestors(b.subject)}
    trained = {id(p) for s in steps(run) for p in held(s)}
    forwards = [e for e in run.tape if e.name == "forward"]
    told: set[int] = set()
    for forward in forwards:
        result = forward.result
        if not isinstance(result, Node) or not result.grad or id(result) in feeding or not forward.turns:
            continue
        if not isinstance(forward.subject, Obj) or inside_another(run, forward) or forward.place is None:
            continue
        if forward.subject.training is None or forward.state.get("training") is not False:
            continue
        if not any(t.generic for t in forward.turns[-1:]) or line_of(forward.place) in told:
            continue
        mine = run.parameters(forward.subject)[0]
        if not any(id(p) in trained for p in mine) or _learns_here(run, forward):
            continue
        if any(n.op == "grad" and n.serial > forward.serial for n in run.nodes if result in n.inputs):
            continue
        told.add(line_of(forward.place))
        yield Answer(forward.place, "nothing is learned from what is computed here, and its graph is kept", ())
