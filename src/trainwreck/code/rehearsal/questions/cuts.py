"""Where the graph is cut: trained parameters that stand behind a loss, and that no backward reaches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.params import KEEPERS
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Table
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.flagged import flag_given
from trainwreck.code.rehearsal.questions.gradients import HAND, going_on, lives, steps
from trainwreck.code.rehearsal.questions.gradients import held as held_at
from trainwreck.code.rehearsal.questions.roles import backwards, unknown
from trainwreck.code.scopes import FunctionNode
from trainwreck.core.row import Row

DETACHES = frozenset(
    ["detach", "detach_", "item", "numpy", "tolist", "data", "tensor", "as_tensor", "array", "asarray"]
)
HARD = frozenset(
    """argmax argmin round sign floor ceil trunc heaviside eq ne lt le gt ge long int bool byte one_hot topk_indices
    bernoulli multinomial argsort sample sample_n""".split()
)
"""Operations through which no gradient, or a gradient of zero, passes."""
FLAT = frozenset(["round", "sign", "floor", "ceil", "trunc", "heaviside", "normal"])
"""Those that hang in the graph all the same: ``torch.normal(mean, std)`` gives both a gradient of zero."""


class Cut(Row):
    """``node`` passes no gradient on, and the parameters ``lost`` get none by any way."""

    node: Node
    kind: str
    """``detached``, ``hard`` or ``no_grad``."""
    lost: tuple[Node, ...]
    loss: Place | None


def cuts(run: Rehearsing) -> list[Cut]:
    """The cuts that keep parameters of an optimizer from all gradients."""
    if "cuts" not in run.memo:
        run.memo["cuts"] = list(_cuts(run))
    found: list[Cut] = run.memo["cuts"]
    return found


def _cuts(run: Rehearsing) -> Iterator[Cut]:
    events = backwards(run)
    if not events:
        return
    # gradients that are asked for may be used by hand: then only those count whose optimizer never finds any
    starved = _starved(run) if any(e.name == "grad" for e in run.tape) else None
    last = max(e.serial for e in run.tape if e.name == "backward")
    held: dict[int, Node] = {}
    for optimizer in [o for o in run.objects if is_optimizer(o)]:
        chosen = _chosen(run, optimizer)
        for param in run.optimized(optimizer)[0]:
            if (
                param.trainable is not False
                and not _kept_otherwise(run, param, last, chosen=chosen)
                and (starved is None or id(param) in starved)
            ):
                held[id(param)] = param
    everyone = [e for e in run.tape if e.name == "backward"]
    reached: set[int] = set()
    blind = False
    for event in everyone:
        passed, seen_unknown = _flow(event.subject)
        reached |= passed
        blind = blind or seen_unknown
    lost = {key: p for key, p in held.items() if key not in reached}
    if blind or not lost:
        return
    behind: dict[int, Cut] = {}
    kept: dict[int, set[int]] = {}
    # of several losses the one whose optimizer would have moved the parameters is meant to reach them
    for event in sorted(events, key=lambda e: not lost.keys() & _moved_next(run, e)):
        for node, kind in _edges(event.subject):
            inside = [lost[key] for key in _params(node) if key in lost]
            if inside:
                behind[id(node)] = Cut(node, kind, tuple(inside), event.place)
                kept[id(node)] = {id(p) for p in inside}
    yield from behind.values()


def _starved(run: Rehearsing) -> set[int]:
    """The parameters (by ``id``) of optimizers whose steps in a loop find no gradient at all, each time."""
    life = lives(run)
    empty, full = [e for e in steps(run) if e in life.empty], [e for e in steps(run) if e not in life.empty]
    by_hand = any(e.name == "set_grad" or (e.name in HAND and _of_gradient(e.subject)) for e in run.tape)
    if not life.sure or by_hand or not any(e.turns for e in empty):
        return set()
    return {id(p) for e in empty for p in held_at(e)} - {id(p) for e in full for p in held_at(e)}


def _of_gradient(value: object) -> bool:
    return isinstance(value, Node) and (value.op == "grad" or value.name == "grad")


def _moved_next(run: Rehearsing, event: Event) -> set[int]:
    """The parameters (by ``id``) of the optimizer whose step follows a backward."""
    after = (e for e in run.tape if e.name == "step" and e.serial > event.serial and is_optimizer(e.subject))
    step = next(after, None)
    return {id(p) for p in run.optimized(step.subject)[0]} if step is not None else set()


def _chosen(run: Rehearsing, optimizer: Obj) -> bool:
    """True where somebody chose what the optimizer holds: groups, or what others are frozen beside. All that a network
    has is given to an optimizer even where a loaded part of it is only to give features."""
    if len(run.groups(optimizer).items) > 1:
        return True
    mine = {id(p) for p in run.optimized(optimizer)[0]}
    return any(n.op == "param" and n.trainable is False and id(n) not in mine for n in run.nodes)


def _kept_otherwise(run: Rehearsing, param: Node, last: int, *, chosen: bool) -> bool:
    """True for a copy that follows other weights, or that is written by hand: it is not meant to learn by gradients.

    What is written after the ``last`` backward (the best weights, put back) has no part in it, and neither has what is
    read once from a file, before any loop, by weights that the optimizer was given by choice."""
    copied = any(isinstance(i, Node) and i.op == "param" for i in param.inputs)
    later = going_on(run)
    writes = [e for e in param.writes if e.serial < last and e.serial not in later and not (chosen and _from_file(e))]
    first = [e for e in writes if not e.full.startswith("torch.nn.init") and e.name != "requires_grad"]
    written = any(e.turns or e.name in ("copy_", "lerp_", "load_state_dict") for e in first)
    return copied or written or bool(KEEPERS.search(param.name.lower()))


def _from_file(event: Event) -> bool:
    """True for weights that are loaded once from a file, and not from another network of the program."""
    given = list(ancestors(event.args[:1]))
    if event.name != "load_state_dict" or event.turns or any(n.op in ("param", "state") for n in given):
        return False
    return any(n.op in ("load", "load_file") for n in given)


def _flow(loss: object) -> tuple[set[int], bool]:
    """Parameters that a gradient other than zero reaches, and whether something unknown lies on the way."""
    passed: set[int] = set()
    blind = False
    queue = list(parts(loss))
    seen = {id(n) for n in queue}
    while queue:
        node = queue.pop()
        if node.op == "param":
            passed.add(id(node))
            continue
        if not node.grad or node.op in FLAT:
            continue
        if unknown(node):
            blind = True
        for inner in _inner(node):
            if id(inner) not in seen:
                seen.add(id(inner))
                queue.append(inner)
    return passed, blind


def _inner(node: Node) -> Iterator[Node]:
    for item in (*node.inputs, *(v for v in node.options.values() if isinstance(v, Node | tuple | Table))):
        yield from parts(item)


def _edges(loss: object) -> Iterator[tuple[Node, str]]:
    """The first values on the ways from the loss that pass no gradient on."""
    queue = list(parts(loss))
    seen = {id(n) for n in queue}
    while queue:
        node = queue.pop(0)
        kind = _kind(node)
        if kind:
            yield node, kind
            continue
        if not node.grad:
            continue
        for inner in _inner(node):
            if id(inner) not in seen:
                seen.add(id(inner))
                queue.append(inner)


def _kind(node: Node) -> str:
    if node.op in FLAT:
        return "hard"
    if node.op == "param" and any(n.grad and n.op != "param" for n in _inner(node)):
        return "detached"  # ``nn.Parameter`` of what was computed is a leaf of its own
    if node.grad or node.op in ("param", "batch") or unknown(node):
        return ""
    if node.op in HARD:
        return "hard"
    if node.op in DETACHES:
        return "detached"
    return "no_grad" if any(n.grad or n.op == "param" for n in _inner(node)) else "behind"


def _params(node: Node) -> set[int]:
    found: set[int] = set()
    queue, seen = [node], {id(node)}
    while queue:
        at = queue.pop()
        if at.op == "param":
            found.add(id(at))
            if any(n.op == "param" for n in _inner(at)):
                continue  # a copy; what is computed and made a leaf (``requires_grad_``) has its parameters behind it
        for inner in _inner(at):
            if id(inner) not in seen:
                seen.add(id(inner))
                queue.append(inner)
    return found


def _source(cut: Cut) -> tuple[Node, str]:
    """The operation behind a value without a gradient that took it away: the last one before it still hung."""
    node, kind = cut.node, cut.kind
    wanted = {id(p) for p in cut.lost}
    for _ in range(200):
        direct = any(isinstance(i, Node) and i.op == "param" and id(i) in wanted for i in node.inputs)
        if kind in ("behind", "no_grad") and direct:
            return node, "no_grad"  # a layer that is to learn; what is behind it may only have made the data
        following = next((n for n in _inner(node) if n.op != "param" and not n.grad and _params(n) & wanted), None)
        if following is None:
            break
        node = following
        kind = _kind(node) or kind
    return node, kind if kind != "behind" else "no_grad"


def detached(run: Rehearsing) -> Iterator[Answer]:
    yield from _answers(run, "detached", "the gradient ends here")


def hard(run: Rehearsing) -> Iterator[Answer]:
    yield from _answers(run, "hard", "no gradient passes this operation")


def _answers(run: Rehearsing, kind: str, text: str) -> Iterator[Answer]:
    told: set[int] = set()
    for cut in cuts(run):
        node, why = _source(cut)
        lost = {id(p) for p in cut.lost}
        if why == kind and node.place is not None and not lost <= told:
            told |= lost
            place = flag_given(run, node, node.place)
            yield Answer(place, f"{text}, and {_names(cut)} never learn", _proof(cut))


def switched_off(run: Rehearsing) -> Iterator[Answer]:
    """The context or decorator that switches gradients off around what is to be trained."""
    found: list[tuple[Place, Cut]] = []
    for cut in cuts(run):
        node, why = _source(cut)
        place = switch_around(run, node) if why == "no_grad" else None
        if place is not None:
            found.append((place, cut))
    # what only made the data (an agent that acts) may be without gradients: the step itself comes first
    own = [(place, cut) for place, cut in found if cut.loss is not None and place[1] is cut.loss[1]]
    told: set[int] = set()
    for place, cut in own or found:
        asked, lost = flag_given(run, _source(cut)[0], place), {id(p) for p in cut.lost}
        if asked is not place and lost <= told:
            continue  # another call, which is right to ask for it
        told |= lost
        yield Answer(asked, f"gradients are off here, and {_names(cut)} never learn", _proof(cut))


def _names(cut: Cut) -> str:
    names = sorted({p.name.rsplit(".", 1)[0] if "." in p.name else p.name for p in cut.lost if p.name})
    return ("the parameters of " + ", ".join(names[:3])) if names else "trained parameters"


def _proof(cut: Cut) -> tuple[Place, ...]:
    return (cut.loss,) if cut.loss is not None else ()


def switch_around(run: Rehearsing, node: Node) -> Place | None:
    """Where gradients were switched off for this value: the innermost ``with`` or decorated function around it."""
    for place in reversed([*node.stack, *([node.place] if node.place is not None else [])]):
        at, scope = place
        project = run.project
        for above in (at, *project.ancestors(at, scope)):
            if isinstance(above, ast.With):
                for item in above.items:
                    if _off(item.context_expr):
                        # beside others that may well be there, the statement itself is what doesn't belong
                        inner = next((b for b in above.body if any(n is at for n in ast.walk(b))), None)
                        return (inner if inner is not None and len(above.body) > 1 else item.context_expr), scope
            if isinstance(above, FunctionNode):
                for decorator in above.decorator_list:
                    if _off(decorator):
                        return decorator, scope
    return None


def left_off(run: Rehearsing) -> Iterator[Answer]:
    """``torch.set_grad_enabled(False)`` as a statement, after which training goes on without a graph."""
    switch: Event | None = None
    switches = [e for e in run.tape if e.name == "set_grad_enabled"]
    if switches and switches[0].tests and all(e.args[0] is False and e.place == switches[0].place for e in switches):
        yield from _never_on(run, switches[0])
        return
    for event in run.tape:
        if event.name == "set_grad_enabled":
            plain = event.place is not None and isinstance(run.project.parent(*event.place), ast.Expr)
            switch = event if event.args[0] is False and plain else None
        elif event.name != "backward" or switch is None or switch.place is None or event.grad_mode:
            continue
        elif isinstance(event.subject, Node) and not event.subject.grad and event.subject.serial > switch.serial:
            text = "gradients are switched off here and still are where the next loss is computed"
            yield Answer(switch.place, text, (event.place,) if event.place is not None else ())
            return


def _never_on(run: Rehearsing, switch: Event) -> Iterator[Answer]:
    """Switched off under a condition, in a loop that goes on to train, and nowhere on again."""
    plain = switch.place is not None and isinstance(run.project.parent(*switch.place), ast.Expr)
    loops = {id(t.node) for t in switch.turns}
    later = [e for e in backwards(run) if any(id(t.node) in loops for t in e.turns)]
    left = any(isinstance(n, ast.Break | ast.Return) for n in _branch(run, switch))
    if plain and later and not left and switch.place is not None:
        text = "gradients are switched off here, and nothing switches them on for the turns that follow"
        yield Answer(switch.place, text, (later[-1].place,) if later[-1].place is not None else ())


def _branch(run: Rehearsing, event: Event) -> Iterator[ast.AST]:
    """What stands in the branch around an event."""
    if event.place is not None:
        for above in run.project.ancestors(*event.place):
            if isinstance(above, ast.If):
                yield from (n for s in above.body for n in ast.walk(s))
                return


def _off(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return "no_grad" in text or "inference_mode" in text or "set_grad_enabled" in text
