"""Learning from a teacher: temperatures on both sides, their square in front, and the state of the teacher."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import Term, losses_of, number_of, parameters_behind

SOFT = frozenset(["softmax", "log_softmax"])
CHANGING = frozenset(["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "BatchNorm1d", "BatchNorm2d",
                      "BatchNorm3d", "SyncBatchNorm"])  # fmt: skip
"""Layers that behave otherwise in training."""


def _soft_terms(run: Rehearsing) -> Iterator[tuple[Event, list[Term], Term, Node, Node]]:
    """Terms that compare two soft distributions of different networks: student's side first."""
    for event, found in losses_of(run):
        for term in found:
            node = term.node
            sides: list[Node] = []
            if node.op in ("kl_div", "cross_entropy", "mul") and len(node.inputs) > 1:
                sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
            if node.op not in ("kl_div", "cross_entropy"):
                sides = [*sides, *term.factors]
            if len(sides) < 2:
                sides = [node, *term.factors]
            if len(sides) < 2:
                continue
            one, other = sides[0], sides[-1]
            if node.op == "kl_div" and other.grad and not one.grad:
                one, other = other, one  # the divergence the other way round
            mine, his = parameters_behind(one).keys(), parameters_behind(other).keys()
            soft = any(n.op in SOFT for n in near(other, 12))
            if soft and mine and ((his and not mine & his) or (not his and _kept(term, other))):
                yield event, found, term, one, other


def _kept(term: Term, other: Node) -> bool:
    """True for what a teacher said before and a file holds: softened, with the square of that in front of the term."""
    heat = temperature(other)
    return heat is not None and heat > 1 and not other.grad and 1 < abs(term.weight) <= heat**2


def temperature(value: Value) -> float | None:
    """What the logits behind a softmax are divided by; 1 where they are not."""
    for node in near(value, 40) if isinstance(value, Node) else ():
        if node.op in SOFT or node.op == "cross_entropy":
            factor, at = 1.0, node.inputs[0] if node.inputs else None
            for _ in range(10):
                if not isinstance(at, Node):
                    return None
                number = number_of(at.inputs[1]) if at.op in ("div", "mul") and len(at.inputs) > 1 else None
                if number:
                    factor = factor * number if at.op == "div" else factor / number
                elif at.op in ("div", "mul"):
                    return None
                elif at.op not in STRUCTURE and at.op not in ("detach", "clamp"):
                    return factor
                at = at.inputs[0] if at.inputs else None
            return factor
    return None


def temperatures(run: Rehearsing) -> Iterator[Answer]:
    """The two sides are softened differently, or the square of the temperature is missing in front."""
    for event, found, term, one, other in _soft_terms(run):
        if term.node.place is None:
            continue
        here, there = temperature(one), temperature(other)
        if term.node.op == "cross_entropy" and here is None:
            here = temperature(term.node)
        if here is None or there is None:
            continue
        proof = (event.place,) if event.place is not None else ()
        if abs(here - there) > 1e-6 and _moves(parameters_behind(other), event):
            continue  # an average of the student's own weights, sharpened or smoothed to what pleases
        if abs(here - there) > 1e-6 and max(here, there) > 1.0:
            sides = [n for n in (*ancestors(one), *ancestors(other)) if n.op in SOFT and n.place is not None]
            plain = next((n for n in sides if temperature(n) == min(here, there)), None)
            place = plain.place if plain is not None and plain.place is not None else term.node.place
            yield Answer(place, f"one side is divided by {here:g}, the other by {there:g}", proof)
            return
        if here < 1 and (squared := _squares(term, 1 / here**2)) is not None:
            sides = [n for n in (*ancestors(one), *ancestors(other)) if n.op in SOFT and n.place is not None]
            text = f"the logits are multiplied by {1 / here:g} here: a temperature divides them"
            yield Answer(next((n.place for n in sides if n.place is not None), squared), text, proof)
            return
        if here < 1.5 or term.factors:
            continue
        rest = sum(abs(t.weight) for t in found if t is not term and _hard(t))
        weight = abs(term.weight)
        balanced = rest > 0 and abs(weight / here**2 + rest - 1) < 0.01
        if weight <= 1.0 and not balanced:
            text = f"the temperature {here:g} makes these gradients {here**2:g} times smaller; its square is missing"
            yield Answer(term.node.place, text, proof)
            return


def _squares(term: Term, number: float) -> Place | None:
    """Where the square of a temperature stands in front of a term."""
    for node in term.path:
        for item in node.inputs[:2] if node.op == "mul" else ():
            if (known := number_of(item)) is not None and abs(known - number) < 1e-6 * number:
                return node.place
    return None


def pushed_from_teacher(run: Rehearsing) -> Iterator[Answer]:
    """The distance from the teacher is taken off the loss: the student moves away from what it is to learn."""
    for event, found, term, one, other in _soft_terms(run):
        wrong = term.node.op == "kl_div" and term.sign < 0 and not term.factors and one.grad and not other.grad
        beside = [t for t in found if t is not term and _hard(t) and t.sign > 0]
        signs = [n for n in term.path if n.op in ("neg", "sub", "mul") and n.place is not None]
        if wrong and beside and signs and not _moves(parameters_behind(other), event):
            text = "the divergence from the teacher is taken off the loss: the student is driven away from it"
            place = signs[0].place or term.node.place
            if place is not None:
                yield Answer(place, text, (event.place,) if event.place is not None else ())
            return


def _hard(term: Term) -> bool:
    return term.node.op in ("cross_entropy", "nll_loss") and not any(
        n.op in SOFT for i in term.node.inputs[1:2] if isinstance(i, Node) for n in near(i, 8)
    )


def teacher_state(run: Rehearsing) -> Iterator[Answer]:
    """The teacher runs as in training, or gets a gradient and is stepped along."""
    told = False
    for event, _, _, one, other in _soft_terms(run):
        params = parameters_behind(other)
        following = next((e for e in steps(run) if e.serial > event.serial), None)
        stepped = {id(p) for p in held(following)} if following is not None else set()
        proof = (event.place,) if event.place is not None else ()
        runs = _forward(run, params, event, one)
        if runs is None or runs.place is None or told:
            continue
        if other.grad and params.keys() & stepped:
            yield Answer(runs.place, "the teacher gets a gradient here and is trained along with the student", proof)
            told = True
        elif not params.keys() & stepped and not _moves(params, event):
            loose = _changing(run, runs)
            if loose is not None:
                text = f"the teacher runs in training mode here: its {loose.name} changes what it says"
                frozen = [e for e in run.tape if e.name == "requires_grad" and e.subject is runs.subject]
                place = frozen[-1].place if frozen and frozen[-1].serial < event.serial else None
                place = _set_so(run, runs, params) or place
                yield Answer(place or runs.place, text, (runs.place, *proof))
                told = True


DISTANCES = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"])


def loaded_and_stepped(run: Rehearsing) -> Iterator[Answer]:
    """A network with weights from a file is to be matched by another one, which begins anew, on the same inputs; and
    it gets a gradient and is stepped too: it comes towards the one that is to learn from it."""
    for event, found in losses_of(run):
        for term in found:
            node = term.node
            sides = [i for i in node.inputs[:2] if isinstance(i, Node) and i.grad] if node.op in DISTANCES else []
            following = next((e for e in steps(run) if e.serial > event.serial), None)
            if len(sides) != 2 or following is None:
                continue
            behind = [parameters_behind(s) for s in sides]
            stepped = {id(p) for p in held(following)}
            if behind[0].keys() & behind[1].keys() or not all(b.keys() and b.keys() <= stepped for b in behind):
                continue
            runs = [_forward(run, b, event, s) for b, s in zip(behind, sides[::-1], strict=True)]
            from_file = [bool(b) and all(_from_file(p) for p in b.values()) for b in behind]
            if sorted(from_file) != [False, True] or runs[0] is None or runs[1] is None:
                continue
            teacher = runs[from_file.index(True)]
            anew = behind[from_file.index(False)]
            same = any(a is b for a in runs[0].args for b in runs[1].args)
            if (
                same
                and teacher is not None
                and teacher.place is not None
                and not any(_from_file(p) for p in anew.values())
            ):
                text = "the teacher gets a gradient here and is trained along with the student"
                yield Answer(teacher.place, text, (event.place,) if event.place is not None else ())
                return


def _from_file(param: Node) -> bool:
    return any(e.name == "load_state_dict" for e in param.writes)


def _set_so(run: Rehearsing, runs: Event, params: dict[int, Node]) -> Place | None:
    """Where the teacher is put into training mode after its own training."""
    own = [e.serial for e in steps(run) if any(id(p) in params for p in held(e))]
    before = [e for e in run.tape if e.subject is runs.subject and e.serial < runs.serial]
    modes = [e for e in before if e.name in ("train", "eval")]
    last = modes[-1] if modes else None
    asked = last is not None and last.name == "train" and last.get("mode", 0, True) is not False
    return last.place if last is not None and asked and last.serial > max(own, default=0) and own else None


def _moves(params: dict[int, Node], event: Event) -> bool:
    """True for an average of the student that is moved in the loop."""
    return any(e.turns and e.name not in ("requires_grad",) and e.name != "load_state_dict"
               for p in params.values() for e in p.writes)  # fmt: skip


def _forward(run: Rehearsing, params: dict[int, Node], event: Event, student: Node) -> Event | None:
    """The call of the teacher: the outermost module with all its parameters and none of the student's."""
    other = parameters_behind(student).keys()
    for forward in reversed(run.tape):
        if forward.name != "forward" or forward.serial > event.serial or not isinstance(forward.subject, Obj):
            continue
        mine = {id(p) for p in run.parameters(forward.subject)[0]}
        if params.keys() <= mine and not mine & other:
            return forward
    return None


def _changing(run: Rehearsing, runs: Event) -> Obj | None:
    """A layer of the teacher that is in training mode in this call, and behaves otherwise there."""
    modes: dict[int, object] = {}
    for forward in run.tape:
        if forward.name == "forward" and forward.serial > runs.serial and isinstance(forward.subject, Obj):
            modes.setdefault(id(forward.subject), forward.state.get("training"))
    for _, module in run.submodules(runs.subject, deep=True) if isinstance(runs.subject, Obj) else ():
        if is_module(module) and module.name in CHANGING and modes.get(id(module), module.training) is True:
            rate = module.get("p", 0, 0.5)
            if "Dropout" not in module.name or (isinstance(rate, int | float) and rate > 0):
                return module
    return None
