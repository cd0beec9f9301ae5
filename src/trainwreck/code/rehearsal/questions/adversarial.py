"""Two networks against each other: what each is pulled to, and whose gradient goes where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.flagged import flag_given
from trainwreck.code.rehearsal.questions.gradients import lives, steps
from trainwreck.code.rehearsal.questions.learners import Learners, learners, shown
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, core
from trainwreck.code.rehearsal.questions.terms import Term, number_of, parameters_behind, terms
from trainwreck.core.row import Row

RISING = frozenset(
    """softplus relu exp sigmoid tanh leaky_relu hardtanh log logsigmoid log1p clamp elu hardsigmoid mean sum either
    expit clip nan_to_num""".split()
)
"""Operations that never fall where their argument rises."""
TOWARDS = frozenset(
    """binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss soft_margin_loss""".split()
)
NOISE = frozenset(["randn", "rand", "normal", "standard_normal", "randn_like", "rand_like", "uniform", "sample"])


Score = Callable[[Node], bool]


class Side(Row):
    """A value of one network that goes into the other: ``value`` of ``maker`` is judged by ``judge`` (bits)."""

    value: Node
    maker: int
    judge: int
    attached: bool
    """A gradient goes on to the maker."""


def sides(run: Rehearsing, loss: Value) -> list[Side]:
    """Where, behind a loss, values of one learner go into a layer of another."""
    known = learners(run)
    found: dict[int, Side] = {}
    for node in ancestors(loss):
        layer = _layer(known, node)
        if not layer:
            continue
        for item in node.inputs:
            for value in (v for p in parts(item) for v in _joined(known, p, layer)):
                maker = known.behind.get(id(value), 0) & ~layer
                if value.op == "param" or not maker or known.behind.get(id(value), 0) & layer:
                    continue
                if maker & (maker - 1):
                    continue
                attached = bool(known.hangs.get(id(value), 0) & maker)
                found[id(value)] = Side(value, maker, layer, attached)
    return list(found.values())


def _joined(known: Learners, value: Node, judge: int, depth: int = 0) -> Iterator[Node]:
    """What is put beside something that the judge computes itself (the embedding of a class); else the value."""
    if not known.behind.get(id(value), 0) & judge or value.op not in JOINS | STRUCTURE or depth > 6:
        yield value
        return
    for item in value.inputs[:1]:
        for inner in parts(item):
            yield from _joined(known, inner, judge, depth + 1)


def _layer(known: Learners, node: Node) -> int:
    """The learner whose parameters ``node`` is directly computed with."""
    bits = 0
    for item in node.inputs:
        if isinstance(item, Node) and item.op == "param":
            bits |= known.behind.get(id(item), 0)
    return bits if bits and not bits & (bits - 1) else 0


class Game(Row):
    """One backward of two networks against each other."""

    event: Event
    sides: tuple[Side, ...]
    trains: int
    """The bit of the learner that steps next after it."""


def games(run: Rehearsing) -> list[Game]:
    """The backward passes through a judge, each with the learner whose step comes next; one for each place."""
    if "games" in run.memo:
        kept: list[Game] = run.memo["games"]
        return kept
    known = learners(run)
    found: dict[tuple[int, ...], Game] = {}
    if len(known.optimizers) > 1:
        walk = [e for e in run.tape if e.name == "backward" or e in steps(run)]
        for number, event in enumerate(walk):
            if event.name != "backward" or event.place is None:
                continue
            following = next((e for e in walk[number + 1 :] if e.name == "step"), None)
            trains = known.bit(following.subject) if following is not None else 0
            mine = tuple(sides(run, event.subject))
            if trains:
                where = tuple(id(at[0]) for at in (*event.stack, event.place))
                found[where] = Game(event, mine, trains)
    run.memo["games"] = list(found.values())
    return list(found.values())


def leaking(run: Rehearsing) -> Iterator[Answer]:
    """The judge's own backward goes on into the maker, and the maker's next step uses that gradient too."""
    known = learners(run)
    for step, events in lives(run).sums:
        maker = known.bit(step.subject)
        for event in events[:-1]:
            used = lives(run).used_by.get(id(event), [])
            judge = next((known.bit(s.subject) for s in used if known.bit(s.subject) not in (0, maker)), 0)
            if not judge or not any(s is not step and known.bit(s.subject) == judge for s in used):
                continue
            for side in sides(run, event.subject):
                if side.maker == maker and side.judge == judge and side.attached and against(run, maker, judge):
                    place = shown(run, side.value)
                    if place is not None:
                        text = "the samples are not detached here: this backward leaves its gradient in their maker too"
                        yield Answer(place, text, tuple(p for p in (event.place, step.place) if p is not None))
                        return


def against(run: Rehearsing, maker: int, judge: int) -> bool:
    """True where each of the two has a backward of its own."""
    trained = {g.trains for g in games(run) if any(s.maker == maker and s.judge == judge for s in g.sides)}
    return {maker, judge} <= trained


def maker_cut_off(run: Rehearsing) -> Iterator[Answer]:
    """The maker's step follows a backward through the judge that does not reach the maker."""
    for game in games(run):
        own = [s for s in game.sides if s.maker == game.trains]
        if not own or any(s.attached for s in own) or _reaches(run, game):
            continue
        if any(
            g.trains == game.trains and any(s.attached and s.maker == g.trains for s in g.sides) for g in games(run)
        ):
            continue
        if not any(g.trains == own[0].judge for g in games(run)):
            continue
        value = own[0].value
        cut = next((n for n in ancestors(value) if n.op in ("detach", "detach_", "data") and n.place is not None), None)
        place = cut.place if cut is not None else shown(run, value)
        if _elsewhere(value) or not _handed_on(game.event.subject, value):
            continue
        if place is not None and game.event.place is not None:
            place = flag_given(run, cut if cut is not None else value, place)
            yield Answer(place, "the loss of the maker gets these samples without their graph", (game.event.place,))


def _reaches(run: Rehearsing, game: Game) -> bool:
    """True where the loss gets to the maker by another way: it learns through what it makes now, and the samples
    without a graph are data that it has gathered before."""
    known = learners(run)
    mine = parameters_behind(game.event.subject, through_grad=True).keys()
    return any(known.behind.get(key, 0) & game.trains for key in mine)


CHOICES = frozenset(["step", "int", "multinomial", "argmax", "choice", "bernoulli", "sample", "tolist"])
LEAVES = OPAQUE | CHOICES | {"numpy"}


def _handed_on(loss: Value, value: Node) -> bool:
    """False where only choices that were made by it come to the loss: data that a policy has gathered."""
    return any(n is value for n in ancestors(loss, through=lambda n: n.op not in CHOICES))


def _elsewhere(value: Node) -> bool:
    """True where the value comes out of something that is not followed, or of a choice among a few (an environment
    that was acted on)."""
    return any(n.op in LEAVES for n in near(value, 200))


# ---------------------------------------------------------------------- what each is pulled to
def pulls(node: Value, sign: int = 1, depth: int = 0, score: Score | None = None) -> Iterator[tuple[int, Node]]:
    """The scores behind a term, each with +1 where the term rises with it, -1 where it falls, 0 if unclear.

    ``score``: tells a sum or a product that is a score as it stands."""
    if not isinstance(node, Node) or depth > 40:
        return
    first = node.inputs[0] if node.inputs else None
    if score is not None and score(node):
        yield sign, node
    elif node.op in TOWARDS and len(node.inputs) >= 2:
        goal = level(node.inputs[1])
        direction = 0 if goal is None else -sign if goal >= 0.5 else sign
        yield from pulls(first, direction, depth + 1, score)
    elif node.op in ("pow", "square") and isinstance(first, Node):
        goal, inner = _goal(first)
        yield from pulls(inner, 0 if goal is None else -sign if goal >= 0.5 else sign, depth + 1, score)
    elif node.op in RISING or node.op in STRUCTURE:
        yield from pulls(first, sign, depth + 1, score)
    elif node.op in ("max", "min") and sum(isinstance(i, Node) for i in node.inputs) == 1 and len(node.inputs) == 2:
        yield from pulls(next(i for i in node.inputs if isinstance(i, Node)), sign, depth + 1, score)
    elif node.op == "neg":
        yield from pulls(first, -sign, depth + 1, score)
    elif node.op in ("add", "sub") and len(node.inputs) >= 2:
        yield from pulls(node.inputs[0], sign, depth + 1, score)
        yield from pulls(node.inputs[1], -sign if node.op == "sub" else sign, depth + 1, score)
    elif node.op in ("mul", "div") and len(node.inputs) >= 2:
        factor = number_of(node.inputs[1])
        if factor is None and node.op == "mul":
            factor, first = number_of(first), node.inputs[1]
        yield from pulls(first, 0 if not factor else sign if factor > 0 else -sign, depth + 1, score)
    else:
        yield sign, node


def _goal(node: Node) -> tuple[float | None, Node]:
    """Of ``s - c`` or ``c - s``: the number that the square pulls to, and what it pulls."""
    if node.op in ("sub", "add") and len(node.inputs) >= 2:
        one, other = node.inputs[:2]
        if isinstance(one, Node) and (goal := level(other)) is not None:
            return (goal if node.op == "sub" else -goal), one
        if isinstance(other, Node) and (goal := level(one)) is not None:
            return (goal if node.op == "sub" else -goal), other
        return None, node
    return 0.0, node


def level(value: Value, depth: int = 0) -> float | None:
    """The number that all elements of a target are."""
    plain = number_of(value)
    if plain is not None or not isinstance(value, Node) or depth > 12:
        return plain
    first = value.inputs[0] if value.inputs else None
    if value.op in ("ones", "ones_like", "new_ones"):
        return 1.0
    if value.op in ("zeros", "zeros_like", "new_zeros"):
        return 0.0
    if value.op in ("full", "full_like", "new_full", "fill"):
        given = value.options.get("fill_value", value.inputs[-1] if len(value.inputs) > 1 else None)
        given = value.inputs[1] if value.op in ("full", "full_like") and len(value.inputs) > 1 else given
        return level(given, depth + 1)
    if value.op in ("empty", "rand", "uniform") and value.op == "uniform" and len(value.inputs) >= 3:
        low, high = number_of(value.inputs[-2]), number_of(value.inputs[-1])
        return (low + high) / 2 if low is not None and high is not None else None
    if value.op in STRUCTURE or value.op in ("buffer", "clone", "long", "int"):
        return level(first, depth + 1) if isinstance(first, Node | int | float) else None
    if value.op in ("add", "sub", "mul", "div", "neg", "rsub"):
        one = level(first, depth + 1)
        other = level(value.inputs[1], depth + 1) if len(value.inputs) > 1 else None
        if value.op == "neg":
            return -one if one is not None else None
        noisy = [o for o in value.inputs[:2] if isinstance(o, Node) and o.op in NOISE | {"mul"}]
        if one is not None and other is None and noisy:
            return one
        if one is None or other is None:
            return None
        if value.op == "div":
            return one / other if other else None
        return {"add": one + other, "sub": one - other, "mul": one * other, "rsub": other - one}[value.op]
    return None


def _score(known: Learners, maker: int, judge: int) -> Score:
    """Tells sums and products of outputs of the judge for the same samples (a score with a part for the class)."""

    def whole(node: Node) -> bool:
        pair = [known.behind.get(id(i), 0) for i in node.inputs[:2] if isinstance(i, Node)]
        if node.op not in ("add", "mul") or len(pair) < 2 or not all(bits & judge for bits in pair):
            return False
        return pair[0] & maker == pair[1] & maker and not any(n.op in TOWARDS for n in near(node, 6))

    return whole


class Pull(Row):
    """A term pulls the judge's score of made (``made``) or other samples up (-1: the loss falls) or down (+1)."""

    term: Term
    made: bool
    direction: int


def _pulls(run: Rehearsing, game: Game, maker: int, judge: int) -> list[Pull]:
    known = learners(run)
    found: list[Pull] = []
    score = _score(known, maker, judge)
    for term in terms(game.event.subject):
        if any(n.op == "grad" for n in near(term.node, 12)):
            continue  # a penalty on gradients pulls no score
        leaves = [(d, n) for d, n in pulls(term.node, score=score) if known.behind.get(id(n), 0) & judge]
        if len(leaves) == 1 and not _only_weights(leaves[0][1]):
            direction, node = leaves[0]
            found.append(Pull(term, bool(known.behind[id(node)] & maker), direction * term.sign))
    return found


def _only_weights(node: Node) -> bool:
    """True for a penalty on weights: no samples stand behind it."""
    ends = [n for n in ancestors(node) if not any(True for i in n.inputs for _ in parts(i))]
    return any(n.op == "param" for n in ancestors(node)) and all(n.op == "param" for n in ends)


def _duels(run: Rehearsing) -> Iterator[tuple[list[Pull], list[Pull]]]:
    """What the judge's own loss and what the maker's loss pull the scores to."""
    told: set[tuple[int, int]] = set()
    for game in games(run):
        for side in game.sides:
            pair = (side.maker, side.judge)
            if pair in told or side.maker == side.judge:
                continue
            told.add(pair)
            if not against(run, *pair):
                continue  # features of one network that another is trained on: a probe, a pupil
            own = [p for g in games(run) if g.trains == side.judge for p in _pulls(run, g, *pair)]
            made = [p for g in games(run) if g.trains == side.maker for p in _pulls(run, g, *pair) if p.made]
            if any(p.made for p in own) and any(not p.made for p in own):
                yield own, made


def swapped(run: Rehearsing) -> Iterator[Answer]:
    """The judge is pulled the same way for both kinds of samples, or the maker helps the judge."""
    for own, made in _duels(run):
        fakes = [p for p in own if p.made and p.direction]
        reals = [p for p in own if not p.made and p.direction]
        if len({p.direction for p in fakes}) != 1 or len({p.direction for p in reals}) != 1:
            continue
        fake, real = fakes[0], reals[0]
        every = [*own, *made]
        goals = {p.direction for p in made if p.direction}
        if fake.direction == real.direction:
            wrong = fake if fake.direction < 0 else real
            yield _told(wrong, "made and real samples are pulled to the same score here", every)
        elif goals == {fake.direction}:
            maker = next(p for p in made if p.direction)
            if real.direction < 0:
                yield _told(
                    maker, "the maker is trained to the score that the judge gives to what is made", every, fake
                )
            else:
                first = min((fake, real), key=lambda p: getattr(_place(p.term, every)[0], "lineno", 0))
                yield _told(first, "the judge is trained to call what is made real, and so is the maker", every, maker)


def _place(term: Term, others: Iterable[Pull] = ()) -> Place:
    """Where a term is written; where a function makes several of them, the call of it."""
    for node in (term.node, *reversed(term.path)):
        if node.place is not None:
            here = node.place[0]
            outside = [p for p in (*node.stack, node.place) if getattr(p[1].node, "name", "") != "forward"]
            if outside and outside[-1] is not node.place:
                return outside[-1]  # within the judge itself
            shared = [p for p in others if p.term.node.place is not None and p.term.node.place[0] is here]
            return node.stack[-1] if len(shared) > 1 and node.stack else node.place
    raise ValueError


def _told(pull: Pull, text: str, others: Iterable[Pull], other: Pull | None = None) -> Answer:
    return Answer(_place(pull.term, others), text, (_place(other.term, others),) if other is not None else ())


def saturating(run: Rehearsing) -> Iterator[Answer]:
    """The maker minimises ``log(1 - D)``: without a gradient where the judge is sure."""
    for own, made in _duels(run):
        for pull in made:
            if pull.direction < 0 and _flat(pull.term):
                yield _told(pull, "this is log(1 - D): it has no slope where the judge is sure", [*own, *made])
                return


def _flat(term: Term) -> bool:
    node, sign = term.node, term.sign
    if node.op in ("binary_cross_entropy", "binary_cross_entropy_with_logits") and len(node.inputs) > 1:
        return sign < 0 and level(node.inputs[1]) == 0.0
    inner = node.inputs[0] if node.inputs and isinstance(node.inputs[0], Node) else None
    if inner is None:
        return False
    if node.op == "softplus":
        return sign < 0 and inner.op != "neg"
    if node.op == "logsigmoid":
        return sign > 0 and inner.op == "neg"
    if node.op in ("log", "log1p") and sign > 0:
        for value in ancestors(inner, through=lambda n: n.op in ("add", "sub", "clamp", "neg", "clip", *STRUCTURE)):
            minus = value.op == "sub" and number_of(value.inputs[0]) is not None
            if (minus or value.op == "neg") and any(n.op == "sigmoid" for n in core(value.inputs[-1])):
                return True
    return False
