"""References of preference losses: unrelated ones, ones that are added instead of taken off, and equal answers."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.places import asked
from trainwreck.code.rehearsal.questions.policy import log_probability
from trainwreck.code.rehearsal.questions.preferences import Margin, margins
from trainwreck.code.rehearsal.questions.terms import Term, parameters_behind

MOVES = frozenset(["getitem", "unsqueeze", "squeeze", "view", "reshape", "long", "to", "batch", "element", "flatten"])
PICKS = frozenset(["gather", "take_along_dim"])
LIKELIHOODS = frozenset(["log_softmax", "log_prob", "cross_entropy"])
MAX_CHAIN = 60


def added(run: Rehearsing) -> Iterator[Answer]:
    """The reference's log-probability of an answer has the sign of the policy's own."""
    for margin in margins(run):
        live, still = _sides(margin)
        if len(live) != 2 or len(still) != 2 or {t.sign for t in live} != {1, -1} or not margin.rewarded:
            continue
        for term in still:
            same = [t for t in live if _data(t) and _data(t) == _data(term)]
            if not same or any(t.sign != term.sign for t in same):
                continue
            place = next((n.place for n in reversed(term.path) if n.op in ("add", "sub") and n.place), None)
            call = asked(term.node)
            if place is not None and call is not None and call[1] is not place[1]:
                place = call  # a function of its own takes them apart as they are given
            if place is not None:
                yield Answer(place, "the reference's log-probability is added to the policy's: it has to be taken off")
                return


def unrelated(run: Rehearsing) -> Iterator[Answer]:
    """The reference is a network of its own with fresh weights: nothing was copied into it."""
    trained = {id(p) for e in steps(run) for p in held(e)}
    for margin in margins(run):
        live, still = _sides(margin)
        for term in still if live else ():
            mine, other = parameters_behind(term.node), parameters_behind(live[0].node)
            if not mine or mine.keys() & (other.keys() | trained) or not other.keys() & trained:
                continue
            holder = next((o for o in run.objects if is_module(o) and o.cls is not None
                           and {id(p) for p in run.parameters(o)[0]} >= mine.keys()), None)  # fmt: skip
            if holder is None or holder.copy_of is not None or holder.place is None:
                continue
            if any(e.name not in INITIAL for p in mine.values() for e in p.writes):
                continue
            if any(id(n) in mine for p in other.values() for e in p.writes for n in ancestors(e.args)):
                continue  # the policy's were copied from it
            if any(_poured(n, mine) for n in run.nodes):
                continue
            text = "the reference has weights of its own: those of the policy were never copied into it"
            yield Answer(holder.place, text, (margin.node.place,) if margin.node.place is not None else ())
            return


def too_early(run: Rehearsing) -> Iterator[Answer]:
    """The reference is a copy of the policy from before its weights were loaded."""
    for margin in margins(run):
        live, still = _sides(margin)
        for term in still if live else ():
            mine, other = parameters_behind(term.node), parameters_behind(live[0].node)
            copy = next((o for o in run.objects if is_module(o) and o.copy_of is not None and o.place is not None
                         and {id(p) for p in run.parameters(o)[0]} >= mine.keys()), None)  # fmt: skip
            if not mine or mine.keys() & other.keys() or copy is None or copy.copy_of is None:
                continue
            loads = [e for e in run.tape if e.name == "load_state_dict" and e.place is not None]
            later = [e for e in loads if e.subject is copy.copy_of and e.serial > copy.serial]
            if later and not any(e.subject is copy and e.serial > copy.serial for e in loads):
                before = any(e.subject is copy.copy_of and e.serial < copy.serial for e in loads)
                resumes = before or any(e.name == "backward" and e.serial < later[0].serial for e in run.tape)
                if not resumes and not later[0].tests and copy.place is not None:
                    text = "this copies the policy before its weights are loaded: the reference keeps random ones"
                    yield Answer(copy.place, text, tuple(p for p in (later[0].place,) if p is not None))
                    return


def _poured(node: Node, mine: dict[int, Node]) -> bool:
    """True where a vector is cut up into these parameters, or into some that aren't known."""
    if node.op != "vector_to_parameters":
        return False
    into = {id(n) for i in (*node.inputs[1:], *node.options.values()) for n in parts(i) if n.op == "param"}
    return not into or bool(into & mine.keys())


INITIAL = frozenset(
    """requires_grad zeros_ ones_ normal_ uniform_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_
    trunc_normal_ orthogonal_ constant_ fill_ zero_""".split()
)
"""What is written into weights at the start, and no copy of others."""


def equal_answers(run: Rehearsing) -> Iterator[Answer]:
    """Both answers of the pairs are the same data."""
    for margin in margins(run):
        live, _ = _sides(margin)
        for one in live:
            for other in live:
                if one.sign <= 0 or other.sign >= 0:
                    continue
                mine, its = _data(one), _data(other)
                later = _root(other)
                if mine and mine == its and later is not None and later.place is not None:
                    text = "the answer that is better and the one that is worse are the same"
                    yield Answer(later.place, text, (margin.node.place,) if margin.node.place is not None else ())
                    return


def _sides(margin: Margin) -> tuple[list[Term], list[Term]]:
    live = [t for t in margin.found if t.node.grad and t.sign and log_probability(t.node) is not None]
    still = [t for t in margin.found if not t.node.grad and t.sign and _origin(t.node) is not None]
    return live, still


def _origin(node: Node) -> Node | None:
    return next((n for n in ancestors(node) if n.op in LIKELIHOODS), None)


def _root(term: Term) -> Node | None:
    """The tokens or actions that a log-probability is about, as they were made."""
    for inner in _before(term):
        if inner.op in PICKS and len(inner.inputs) > 1:
            at: Value = next((i for i in reversed(inner.inputs) if isinstance(i, Node)), None)
            while isinstance(at, Node) and at.op in MOVES and at.inputs and isinstance(at.inputs[0], Node):
                if at.op == "getitem" and _picked(at.inputs[1:]):
                    break
                at = at.inputs[0]
            return at if isinstance(at, Node) else None
    return None


def _before(term: Term) -> list[Node]:
    """What was done to a log-probability up to where the tokens were picked, this included."""
    found: list[Node] = []
    for inner in term.path:
        found.append(inner)
        if inner.op in PICKS:
            return found
    at: Node | None = term.node
    while at is not None and len(found) < MAX_CHAIN:
        found.append(at)
        if at.op in PICKS | LIKELIHOODS:
            break
        at = next((i for i in at.inputs if isinstance(i, Node) and _origin(i) is not None), None)
    return found


def _picked(index: Value) -> bool:
    """True where an index takes one row or column, or some of them by their numbers."""
    if isinstance(index, tuple):
        return any(_picked(i) for i in index)
    return isinstance(index, int | Node) and not isinstance(index, bool)


def _data(term: Term) -> tuple[object, ...]:
    """Equal for log-probabilities of the same data, however often they were read; empty where that isn't known."""
    root = _root(term)
    if root is None or root.unknown or root.op in ("argument", "call"):
        return ()
    return (*_key(root), *(_key(n.inputs[1:]) for n in _before(term) if n.op in ("getitem", "part")))


def _key(value: Value, depth: int = 0) -> tuple[object, ...]:
    """Equal for values that are selected alike from the same ones."""
    if isinstance(value, tuple):
        return tuple(_key(v, depth) for v in value)
    if isinstance(value, Obj) and value.kind == "builtins.slice":
        return ("slice", *map(repr, value.args))
    if not isinstance(value, Node):
        return (repr(value),)
    if value.op in ("where", "getitem", "lt", "gt", "unsqueeze", "eq", "part") and depth < 4:
        return (value.op, *(_key(i, depth + 1) for i in value.inputs))
    return (id(value),)


__all__ = ["added", "equal_answers", "unrelated"]
