"""Preference losses: what the reference is, and which answer the margin prefers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, is_module
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.places import asked
from trainwreck.code.rehearsal.questions.policy import log_probability
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.terms import Term, number_at, number_of, parameters_behind, terms
from trainwreck.core.row import Row

REFERENCE = pattern(r"ref|old|frozen|base|anchor|prior|init|sft|start", re.IGNORECASE)
CHOSEN = pattern(r"chosen|prefer|win|better|good|pos(itive)?|accepted|liked|yes|\byw\b|_w\b", re.IGNORECASE)
REJECTED = pattern(r"reject|los(e|er|ing)|worse|bad|neg(ative)?|disliked|dispref|\byl\b|_l\b", re.IGNORECASE)

LESS = pattern(r"energ|dist|cost|penalt|nll|perplex", re.IGNORECASE)
"""Functions of which the smaller value is the better one."""
DISTANCES = frozenset(["norm", "cdist", "pairwise_distance", "dist", "vector_norm"])


class Margin(Row):
    """The margin of a preference loss: its terms, and +1 where the loss falls with it."""

    event: Event
    node: Node
    found: tuple[Term, ...]
    rewarded: int


def margins(run: Rehearsing) -> list[Margin]:
    """What goes into the log-sigmoid of a loss."""
    if "margins" not in run.memo:
        made: list[Margin] = []
        for event in backwards(run):
            for term in terms(event.subject):
                node = term.node
                inner = node.inputs[0] if node.inputs and isinstance(node.inputs[0], Node) else None
                if inner is None:
                    continue
                if node.op == "logsigmoid" or (node.op == "log" and inner.op == "sigmoid"):
                    inner = inner if node.op == "logsigmoid" else inner.inputs[0]
                    made.append(Margin(event, node, tuple(terms(inner)), -term.sign))
                elif node.op == "softplus":
                    made.append(Margin(event, node, tuple(terms(inner)), -term.sign))
                elif node.op in ("pow", "square", "relu", "clamp", "binary_cross_entropy_with_logits"):
                    made.append(Margin(event, node, tuple(terms(inner)), 0))
        run.memo["margins"] = made
    kept: list[Margin] = run.memo["margins"]
    return kept


def own_reference(run: Rehearsing) -> Iterator[Answer]:
    """The reference is run with the parameters that are trained, or learns along."""
    trained = {id(p) for e in steps(run) for p in held(e) if p.trainable is not False}
    for margin in margins(run):
        live = [t for t in margin.found if t.node.grad and log_probability(t.node) is not None]
        still = [t for t in margin.found if not t.node.grad and _log_probability(t.node)]
        if len(live) < 1:
            continue
        for term in still:
            mine = parameters_behind(term.node)
            other = parameters_behind(live[0].node)
            if not mine or mine.keys() != other.keys() or not mine.keys() & trained or _adapters_off(run, term.node):
                continue
            if not _at_each_step(term.node, margin.event):
                continue
            place = alias(run, mine) or asked(term.node)
            if place is not None:
                text = "the reference is the policy itself: the difference between them stays zero"
                yield Answer(place, text, (margin.node.place,) if margin.node.place is not None else ())
                return
        yield from _learning(run, margin, live, trained)
        yield from _follows(run, margin, still)


def _log_probability(node: Node) -> bool:
    return any(n.op in ("log_softmax", "log_prob", "cross_entropy") for n in near(node, 40))


def _at_each_step(node: Node, event: Event) -> bool:
    """True where the reference runs in the loop of the updates (not once before them)."""
    origin = next((n for n in ancestors(node) if n.op in ("log_softmax", "log_prob", "cross_entropy")), node)
    return not event.turns or any(t in origin.turns for t in event.turns[-1:])


def _learning(run: Rehearsing, margin: Margin, live: list[Term], trained: set[int]) -> Iterator[Answer]:
    """Two networks in the margin, and both are trained."""
    behind = [(t, parameters_behind(t.node)) for t in live]
    for term, mine in behind:
        apart = [o for o, other in behind if not mine.keys() & other.keys()]
        if not apart or not mine.keys() & trained or len(behind) < 4:
            continue
        place = asked(term.node)
        words = ast.unparse(place[0]) if place is not None and isinstance(place[0], ast.expr) else ""
        if place is not None and REFERENCE.search(words):
            yield Answer(place, "the reference is trained along with the policy", ())
            return


def _follows(run: Rehearsing, margin: Margin, still: list[Term]) -> Iterator[Answer]:
    """The reference is set to the policy at every update."""
    for term in still:
        mine = parameters_behind(term.node).keys()
        for event in run.tape:
            if event.name != "load_state_dict" or not is_module(event.subject) or not margin.event.turns:
                continue
            params = {id(p) for p in run.parameters(event.subject)[0]}
            every = event.turns and event.turns[-1].node is margin.event.turns[-1].node and not event.maybe
            if mine and mine <= params and every and event.place is not None:
                yield Answer(event.place, "the reference is set to the policy again at every update", ())
                return


def _adapters_off(run: Rehearsing, node: Node) -> bool:
    """True where the reference is the policy without its adapters."""
    for inner in near(node, 60):
        for at, scope in (*inner.stack, *((inner.place,) if inner.place is not None else ())):
            for above in run.project.ancestors(at, scope):
                if isinstance(above, ast.With) and any("adapter" in ast.unparse(i.context_expr) for i in above.items):
                    return True
    return False


def alias(run: Rehearsing, params: dict[int, Node]) -> Place | None:
    """Where the network that holds these parameters gets a second name that speaks of a reference."""
    best: Place | None = None
    for place, obj in run.memo.get("aliases", ()):
        if isinstance(obj, Obj) and is_module(obj) and {id(p) for p in run.parameters(obj)[0]} >= params.keys():
            node = place[0]
            targets = " ".join(ast.unparse(t) for t in getattr(node, "targets", ()))
            value = ast.unparse(node.value)
            if REFERENCE.search(targets) and not REFERENCE.search(value):
                return tuple(place)
            best = best or (tuple(place) if REFERENCE.search(targets) else None)
    return _given_twice(run, params) or best


def _given_twice(run: Rehearsing, params: dict[int, Node]) -> Place | None:
    """A call that is given the network for two of its arguments."""
    for obj in run.objects:
        given = [*obj.args, *obj.options.values()]
        mine = [v for v in given if isinstance(v, Obj) and is_module(v)]
        if len(mine) > 1 and any(a is b for n, a in enumerate(mine) for b in mine[n + 1 :]) and obj.place is not None:
            return obj.place
    return None


def without_weight(run: Rehearsing) -> Iterator[Answer]:
    """The margin is multiplied by zero."""
    for margin in margins(run):
        first = margin.node.inputs[0] if margin.node.inputs else None
        for node in [n for n in ancestors(first, through=lambda n: n.op in ("neg", "mul", "sigmoid")) if n.op == "mul"]:
            place = next((p for n, i in enumerate(node.inputs[:2]) if number_of(i) == 0.0
                          and (p := number_at(run, node, n)) is not None), None)  # fmt: skip
            if place is not None:
                yield Answer(place, "beta is zero: the loss is ln 2 whatever the policy does",
                             (margin.node.place,) if margin.node.place is not None else ())  # fmt: skip
                return


# ---------------------------------------------------------------------- which answer is better
def swapped(run: Rehearsing) -> Iterator[Answer]:
    """The margin falls with the log-probability of the answer that is called chosen."""
    for margin in margins(run):
        if not margin.rewarded or _likelihood_falls(margin):
            continue  # of the latter it is told that its sign is missing
        term = _turned(margin)
        if term is not None and margin.node.place is not None:
            place = next((n.place for n in reversed(term.path) if n.op == "sub" and n.place), margin.node.place)
            text = "the margin rewards what is called rejected, and punishes what is called chosen"
            yield Answer(place, text, (margin.node.place,))
            return


def likelihood_minimised(run: Rehearsing) -> Iterator[Answer]:
    """``logsigmoid(chosen - rejected)`` is added to what is minimised: the margin is right, and its sign is missing."""
    for margin in margins(run):
        if _likelihood_falls(margin) and _turned(margin) is not None and margin.node.place is not None:
            text = "the likelihood that what is called chosen stands above what is called rejected is minimised"
            proof = (margin.event.place,) if margin.event.place is not None else ()
            yield Answer(margin.node.place, text, proof)
            return


def _likelihood_falls(margin: Margin) -> bool:
    """True where a logarithm of a probability is itself minimised."""
    return margin.node.op in ("logsigmoid", "log") and margin.rewarded < 0


def _turned(margin: Margin) -> Term | None:
    """A side of the margin that is pushed against its name, where the other side is too."""
    live = [t for t in margin.found if t.node.grad]
    for term in margin.found:
        if not term.node.grad or not term.sign:
            continue
        kind = named(term.node)
        if kind and kind != term.sign * margin.rewarded:
            others = [t for t in live if t.sign == -term.sign and named(t.node) == -kind]
            if others or (len(live) == LONE and _of_the_other(term, live, kind)):
                return term
    return None


LONE = 2
"""Terms of a margin between two answers without a reference."""


def _of_the_other(term: Term, live: list[Term], kind: int) -> bool:
    """True where the other side is what is left of the two that this one was chosen of."""
    other = next(t for t in live if t is not term)
    if other.sign != -term.sign or named(other.node):
        return False
    picks = [[n for n in near(t.node, 200) if n.op == "where" and len(n.inputs) > 2] for t in (term, other)]
    return any(a.inputs[1] is b.inputs[2] and a.inputs[2] is b.inputs[1] for a in picks[0] for b in picks[1])


def named(node: Node) -> int:
    """+1 for a value of the chosen answer by the keys and names of its data, -1 of the rejected one; 0 also where
    the smaller value is the better one."""
    if _less_is_better(node):
        return 0
    words: list[str] = []
    for inner in near(node, 200):
        if inner.op in ("item", "getitem", "batch", "element", "part", "argument"):
            words += [i for i in inner.inputs if isinstance(i, str)]
            words += [inner.name] if inner.op == "argument" else []
    one, other = (bool(kind.search(" ".join(words))) for kind in (CHOSEN, REJECTED))
    if one != other and _by_keys(words):
        return 1 if one else -1  # what the data call it, whatever name it has by now
    calls = [p[0] for p in (node.place, *reversed(node.stack[-2:])) if p is not None and isinstance(p[0], ast.Call)]
    for call in calls:  # what is handed over last tells most: the call around it may be given both answers
        text = " ".join((*words, *(ast.unparse(a) for a in call.args)))
        one, other = bool(CHOSEN.search(text)), bool(REJECTED.search(text))
        if one != other:
            return 1 if one else -1
    return 0


def _by_keys(words: list[str]) -> bool:
    """True where the data of this answer are looked up by the exact words of preference data."""
    return bool({"chosen", "rejected"} & set(words))


def _less_is_better(node: Node) -> bool:
    """True for distances and energies."""
    for inner in near(node, 12):
        first = inner.inputs[0] if inner.inputs else None
        if inner.op in DISTANCES:
            return True
        if inner.op in ("pow", "square", "abs") and isinstance(first, Node) and first.op == "sub":
            return True
    calls = [at[0] for at in (*node.stack[-2:], node.place) if at is not None and isinstance(at[0], ast.Call)]
    return any(LESS.search(last_name(c.func)) for c in calls)
