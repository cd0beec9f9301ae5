"""Inputs that are randomly distorted in evaluation as in training."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import DECIDED, Event, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import inputs_of
from trainwreck.code.rehearsal.questions.paths import ORDERS, RANDOM, Path, paths
from trainwreck.code.rehearsal.questions.redrawn import generator_of
from trainwreck.code.rehearsal.questions.roles import trained as learned

DISTORTS = pattern(
    r"augm|jitter|flip|crop|distort|perturb|noise|noisy|roll|shift|rotat|cutout|erase|mixup|cutmix|specaug|corrupt|"
    r"time_?warp|random_|rand_|scale_?aug|color|(time|freq(uency)?)_?mask|mask_?(time|freq)"
)
"""Words by which programs call random distortions of inputs."""
SWEEP = 4
"""Values that are looked at behind a distortion for how strong it is."""
COMPARES = pattern(r"^sub$|loss|cross_entropy")
FLAG = pattern(r"^(self\.)?(is_)?(train|training|augment|aug|augmentation|do_augment)(_mode)?$")
"""A test that tells training from evaluation, as a flag of a data set."""


def distorted(run: Rehearsing) -> Iterator[Answer]:
    """Inputs that are randomly distorted in training, by code that the evaluation runs too."""
    train, held = inputs_of(run)
    begun = min((e.serial for e in run.tape if e.name in ("iterate", "forward")), default=0)
    known: dict[tuple[int, int], bool] = {}
    trained = {
        id(node.place[0]) for _, path in train for node in _random_steps(path, begun, known) if node.place is not None
    }
    told: set[int] = set()
    seen: set[tuple[int, int]] = set()
    undone = _denoised(run, train, begun, known)
    wanted = _wanted(run) if trained and held else set()
    for event, path in held:
        for node in _random_steps(path, begun, known):
            if (id(node), id(event)) in seen:
                continue
            seen.add((id(node), id(event)))
            if node.place is None or id(node.place[0]) not in trained or not _called_so(run, node):
                continue
            if _drawn_again(run, path, node) or id(node.place[0]) in undone or _swept(run, node):
                continue
            if _of_prototypes(path, node):
                continue
            if _of_the_method(run, node, event) or _filled_in(path, node) or _simulated(run, path, node, begun, wanted):
                continue
            place = _made_for_it(run, node) or _asked_for(path, node)
            if place is None or id(place[0]) in told:
                continue
            told.add(id(place[0]))
            text = "the evaluation gets inputs that are randomly distorted, as in training"
            yield Answer(place, text, tuple(p for p in (node.place, event.place) if p is not None))


def _denoised(
    run: Rehearsing, train: list[tuple[Event, Path]], begun: int, known: dict[tuple[int, int], bool]
) -> set[int]:
    """Distortions whose undistorted input a training loss compares with: the network learns to undo them."""
    clean: set[int] = set()
    for node in learned(run):
        sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
        if len(sides) == 2 and sides[0].grad != sides[1].grad and COMPARES.search(node.op):
            plain = next(s for s in sides if not s.grad)
            clean |= {id(plain), *(id(n) for p in paths(run, plain) for n in p.nodes)}
    return {
        id(node.place[0])
        for _, path in train
        for node in _random_steps(path, begun, known)
        if node.place is not None and id(path.nodes[_at(path, node) - 1]) in clean
    }


def _drawn_again(run: Rehearsing, path: Path, node: Node) -> bool:
    """True where the same input is distorted several times in one evaluation: copies whose answers are averaged."""
    base = path.nodes[_at(path, node) - 1]
    taught = {id(t.node) for e in run.tape if e.name == "backward" for t in e.turns}
    mine = [t for t in node.turns if id(t.node) in taught]
    for other in run.nodes:
        if other is node or other.place is None or node.place is None or other.place[0] is not node.place[0]:
            continue
        if any(i is base for i in other.inputs):
            turns = [t for t in other.turns if id(t.node) in taught]
            if [(id(t.node), t.index) for t in turns] == [(id(t.node), t.index) for t in mine]:
                return True
    return False


def _of_prototypes(path: Path, node: Node) -> bool:
    """True where a row is repeated before the noise comes to it, or by it: samples are drawn around a centre of their
    class."""
    at = _at(path, node)
    one, many = path.nodes[at - 1].shape, node.shape
    alike = not one.open and not many.open and len(one.dims) == len(many.dims)
    spread = alike and any(a == 1 and b not in (1, None) for a, b in zip(one.dims, many.dims, strict=True))
    return spread or any(n.op in REPEATS for n in path.nodes[:at])


MOVES = frozenset("getitem index_select batch element part clone copy setitem to float unsqueeze squeeze".split())
"""What only takes rows of what was made before, or copies them."""
REPEATS = frozenset(["repeat_interleave", "repeat", "tile", "expand", "expand_as"])


def _filled_in(path: Path, node: Node) -> bool:
    """``x + rand_like(x)`` of whole numbers: a density of what is discrete is one of values spread within each step, in
    training as in evaluation."""
    at = _at(path, node)
    noise = [i for i in node.inputs if isinstance(i, Node) and i is not path.nodes[at - 1]]
    even = len(noise) == 1 and any(n.op in EVEN for n in near(noise[0], 2))
    return node.op == "add" and even and any(n.op in WHOLE for n in path.nodes[:at])


def _simulated(run: Rehearsing, path: Path, node: Node, begun: int, wanted: set[int]) -> bool:
    """True where what gets the noise is no array that was there before: a simulation drew it anew, by code that no
    word calls a distortion, or as what the network is to find (``wanted``: the places where such is drawn)."""
    before = path.nodes[: _at(path, node)]
    if path.root.op in GRIDS and any(n.serial >= begun and n.op not in MOVES for n in before):
        return True  # what is made from the grid is worked out for each batch
    drawn = [d for d in _draws(before[-1], {id(n) for n in before}) if d.serial >= begun and d.place is not None]
    numbered = generator_of(path.root) is not None if path.root.op in RANDOM else False
    anew = [d for d in drawn if not numbered or generator_of(d) is None]  # a sample is drawn alike from its number
    return any(d.place is not None and (id(d.place[0]) in wanted or not _called_so(run, d)) for d in anew)


def _wanted(run: Rehearsing) -> set[int]:
    """Where the numbers are drawn that training losses compare with."""
    found: set[int] = set()
    for node in learned(run):
        sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
        if len(sides) == 2 and sides[0].grad != sides[1].grad and COMPARES.search(node.op):
            drawn = _draws(next(s for s in sides if not s.grad))
            found |= {id(n.place[0]) for n in drawn if n.place is not None}
    return found


def _draws(value: Node, way: Collection[int] = ()) -> list[Node]:
    """The random numbers that ``value`` was computed from. A random choice of its rows is none of them, nor what is
    only added on the ``way`` from an array (by ``id``)."""
    found: list[Node] = []
    queue, seen = [value], {id(value)}
    while queue and len(seen) < MOST:
        at = queue.pop()
        if at.op in RANDOM:
            if at.op not in ORDERS:
                found.append(at)
            continue
        behind = at.inputs[:1] if at.op in PICKS else () if at.op == "param" else at.inputs
        if at.op in ("add", "sub") and id(at) in way:
            behind = tuple(i for i in behind if id(i) in way)
        inner = [n for item in behind for n in parts(item) if id(n) not in seen]
        seen |= {id(n) for n in inner}
        queue += inner
    return found


GRIDS = frozenset(["linspace", "arange", "logspace", "meshgrid", "mgrid", "counter"])
"""Values that no measurement gave: what is computed of them is simulated."""
PICKS = frozenset(["getitem", "index_select", "gather", "take", "element"])
MOST = 400


EVEN = frozenset(["rand", "rand_like", "uniform", "random", "uniform_"])
WHOLE = frozenset("floor round trunc ceil int long byte uint8 randint integers bucketize digitize argmax".split())


def _swept(run: Rehearsing, node: Node) -> bool:
    """True where one call distorts by several known strengths in turn: a curve of robustness."""
    where = node.stack[-1] if node.stack else node.place
    strengths: set[tuple[float, ...]] = set()
    for other in run.nodes:
        there = other.stack[-1] if other.stack else other.place
        if other.op != node.op or there is None or where is None or there[0] is not where[0]:
            continue
        if other.place is not None and node.place is not None and other.place[0] is node.place[0]:
            near_ones = near(other.attributes.get("?test", other), SWEEP)
            strengths.add(tuple(i for n in near_ones for i in n.inputs if isinstance(i, int | float)))
    return len(strengths) > 1


def _random_steps(path: Path, begun: int, known: dict[tuple[int, int], bool]) -> list[Node]:
    """Operations on the way with a random operand, or that a random test decided about. The array itself was there
    before the first batch (``begun``), what distorts it comes after. ``known``: what was found out on other ways."""
    found: list[Node] = []
    numbered = path.root.serial > begun and path.root.op in RANDOM and generator_of(path.root) is not None
    if path.root.serial > begun and not numbered:
        return found
    for reached, before in zip(path.nodes[1:], path.nodes, strict=False):
        node = reached.attributes.get(DECIDED, reached)
        if node.serial >= begun:
            key = (id(node), id(before))
            if key not in known:
                known[key] = _random_operand(node, before, numbered)
            if known[key]:
                found.append(node)
    return found


def _at(path: Path, node: Node) -> int:
    """Which of the values on the way a random step is, or was taken from."""
    return next(n for n, reached in enumerate(path.nodes) if node in (reached, reached.attributes.get(DECIDED)))


def _random_operand(node: Node, before: Node, numbered: bool = False) -> bool:
    """``numbered``: the sample itself is drawn with a generator of its own, and so is all that is drawn with one."""
    rest: list[Value] = [i for i in node.inputs if i is not before]
    if node.op == "getitem" and rest and not isinstance(rest[0], tuple):
        return False
    if node.op == "either" and "?test" in node.attributes:
        rest = [node.attributes["?test"]]
    drawn = (n for i in rest for o in parts(i) for n in near(o, 40) if n.op in RANDOM)
    return any(not numbered or generator_of(n) is None for n in drawn)


def _of_the_method(run: Rehearsing, node: Node, event: Event) -> bool:
    """True where a module that holds the network adds the noise itself, to train it and to sample from it."""
    owner = node.place[1].owner if node.place is not None else None
    around = [o for o in run.objects if o.cls is not None and o.cls.scope is owner and o is not event.subject]
    return any(any(m is event.subject for _, m in run.submodules(o, deep=True)) for o in around)


def _called_so(run: Rehearsing, node: Node) -> bool:
    """True where the distortion is called one: in its statement, by the name of the function that it stands in, or
    where a flag of that name decides about it (``if self.train:``)."""
    assert node.place is not None
    names = [node.place[1].name, written(run.project.statement(*node.place))[:200]]
    if DISTORTS.search(" ".join(names).lower()):
        return True
    at: ast.AST | None = node.place[0]
    while at is not None:
        above = run.project.parent(at, node.place[1])
        if isinstance(above, ast.If) and at in above.body and FLAG.search(written(above.test)):
            return True
        at = above
    return False


def _made_for_it(run: Rehearsing, node: Node) -> Place | None:
    """Of a data set that distorts its samples and is gone through without a loader: where it is made."""
    owner = node.place[1].owner if node.place is not None else None
    made = [o for o in run.objects if o.cls is not None and o.cls.scope is owner and o.place is not None]
    fed = {id(e.subject.get("dataset", 0)) for e in run.tape if e.name == "iterate" and isinstance(e.subject, Obj)}
    rest = [o for o in made if id(o) not in fed]
    return rest[0].place if len(made) == len(rest) + 1 == FEW_SETS else None


FEW_SETS = 2


def _asked_for(path: Path, node: Node) -> Place | None:
    """Where the evaluation asked for it: the data set that was made for it, else the call, else the place itself."""
    loader = next((n.owner for n in reversed(path.nodes) if n.op == "batch" and n.owner is not None), None)
    dataset = loader.get("dataset", 0) if loader is not None else None
    if isinstance(dataset, Obj) and dataset.place is not None and dataset.cls is not None:
        return dataset.place
    return node.stack[-1] if node.stack else node.place
