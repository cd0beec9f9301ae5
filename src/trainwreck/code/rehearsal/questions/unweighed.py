"""A loss that is worked out in each step and only shown, beside a weight for it that nothing reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Value
from trainwreck.code.rehearsal.graph import ancestors, graph, near, opaque, reached
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.dropped_terms import summed_at
from trainwreck.code.rehearsal.questions.gradients import backwards, same_turn
from trainwreck.code.rehearsal.questions.roles import users
from trainwreck.code.rehearsal.questions.terms import terms

WEIGHT = pattern(
    r"(^|_)(lam|lambda|lambd|lmbda|alpha|beta|gamma|mu|rho|weight|wt|w|coef|coeff|reg|scale|kl|aux|strength|penalty|"
    r"factor|importance|tradeoff)(_|$|\d)|_lambda$|^lambda_",
    re.IGNORECASE,
)
LOOKS = frozenset(["item", "detach", "float", "float_value", "cpu", "numpy", "text", "append"])
"""What only shows a value."""
ENDS = frozenset(["zeros", "ones", "zeros_like", "ones_like", "full", "full_like"])
MADE = frozenset(["mean", "sum", "mul", "div", "neg", "add"])
LEASH = pattern(r"(^|_)kl(_|$)")
"""Names of a leash to another policy: it is asked for by itself."""


def weight_never_read(run: Rehearsing) -> Iterator[Answer]:
    """A mean that hangs in the graph of the weights that learn is no part of what runs backward, and the number that
    would weigh it is read by nothing in the program."""
    events = [e for e in backwards(run) if e.turns and isinstance(e.subject, Node)]
    if not events or any(opaque(e.subject) for e in events):
        return
    inside = {id(n) for e in events for n in graph(e.subject)}
    learned = {id(p) for e in events for p in reached(e.subject)}
    for event in events:
        for node in run.nodes:
            if id(node) in inside or not _whole(run, node, event) or not same_turn(event, node):
                continue
            if (
                any(id(p) in learned for p in reached(node))
                and (name := _idle_weight(run.project))
                and not LEASH.search(name)
            ):
                text = (
                    f"a loss is worked out in this step and not added, and nothing reads {name}, which would weigh it"
                )
                proof = (node.place,) if node.place is not None else ()
                yield Answer(summed_at(run, event), text, proof)
                return


def conditions_left_out(run: Rehearsing) -> Iterator[Answer]:
    """All that is minimised is the residual of a differential equation, which many functions fulfil; what would tell
    them apart (values at the ends, at the start, of measurements) is worked out in each step and only shown.

    Asked where the derivatives are those of what a layer gives as it is, and where the values come from a pass of
    their own: an ansatz that holds the ends needs no such term, and of energies whose forces are learned the value is
    there anyway. Beside other terms only what is asked at an end (an axis of zeros or ones) is sure to be one."""
    for event in backwards(run):
        inside = list(graph(event.subject))
        derived = [n for n in inside if n.op == "grad" and n.inputs]
        if not event.turns or not derived or opaque(event.subject):
            continue
        alone = all(_derived(t.node) for t in terms(event.subject))
        layers = {id(weight) for d in derived for weight in _bare_layers(d.inputs[0])}
        known = {id(n) for n in inside}
        written = {id(n.place[0]) for n in inside if n.place is not None}
        for node in run.nodes if layers else ():
            if (
                id(node) in known
                or node.place is None
                or id(node.place[0]) in written
                or node.maybe > event.maybe
                or not _whole(run, node, event)
            ):
                continue
            own = [n for n in graph(node) if n.op == "linear" and id(n) not in known and id(n.inputs[1]) in layers]
            asked = bool(own) and same_turn(event, node) and not _derived(node) and _squared(node)
            if asked and (alone or any(_constant(n) for n in ancestors(tuple(n.inputs[0] for n in own)))):
                text = "what this step works out beside the equation is no part of the loss"
                yield Answer(summed_at(run, event), text, (node.place,))
                return


def _constant(node: Node) -> bool:
    """True for zeros or ones, also written as ``0 * t``."""
    return node.op in ENDS or (node.op == "mul" and any(isinstance(i, int | float) and i == 0 for i in node.inputs))


def _derived(node: Node) -> bool:
    return any(n.op == "grad" for n in graph(node))


def _bare_layers(value: Value) -> Iterator[Node]:
    """The weights of the layers whose outputs a value is, summed up or derived at most."""
    for node in ancestors(value, through=lambda n: n.op in ("sum", "grad", "part", "getitem", "squeeze", "split")):
        if node.op == "linear" and len(node.inputs) > 1 and isinstance(node.inputs[1], Node):
            yield node.inputs[1]


def _squared(node: Node) -> bool:
    """True for the mean of squares."""
    return any(n.op in ("pow", "square", "mse_loss") for n in near(node, 4))


def _whole(run: Rehearsing, node: Node, event: Event) -> bool:
    """True for one number of this step that is shown at most."""
    if not node.grad or node.serial > event.serial or node.shape.open or node.shape.dims or node.place is None:
        return False
    if node.op not in MADE and not node.op.endswith(("_loss", "entropy", "_logits", "kl_div")):
        return False
    return len(node.turns) >= len(event.turns) and all(u.op in LOOKS for u in users(run).get(id(node), ()))


def _idle_weight(project: Project) -> str:
    """The name of a number that would weigh a loss, and that nothing reads."""
    read: set[str] = set()
    for walked in project.walked.values():
        for node in ast.walk(walked.top.module.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.add(node.attr)
            elif isinstance(node, ast.Call) and any(k.arg is None for k in node.keywords):
                return ""  # all names of a table may be handed on
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("vars", "asdict"):
                return ""
    for walked in project.walked.values():
        for name in _numbers(walked.top.module.tree):
            if name not in read and WEIGHT.search(name):
                return name
    return ""


def _numbers(tree: ast.AST) -> Iterator[str]:
    """Names that are given a plain number: parameters, constants, fields, options of a command line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(args=args):
                late = args.args[len(args.args) - len(args.defaults) :]
                pairs = [*zip(late, args.defaults, strict=False), *zip(args.kwonlyargs, args.kw_defaults, strict=False)]
                yield from (a.arg for a, d in pairs if _number(d))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _number(value):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if _number(value):
                yield name
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=[ast.Constant(value=str(text)), *_]):
                if any(k.arg == "default" and _number(k.value) for k in node.keywords):
                    yield text.lstrip("-").replace("-", "_")


def _number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


__all__ = ["conditions_left_out", "weight_never_read"]
