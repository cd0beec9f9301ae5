"""Are the data of the evaluation drawn again from the seed of the training data?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import HELD, TRAIN
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.canonical import canon
from trainwreck.code.rehearsal.questions.paths import Path, evaluated, trained
from trainwreck.code.rehearsal.questions.splits import sides
from trainwreck.code.rehearsal.questions.streams import DRAWS, SEEDED

Stream = tuple[object, ...]
ROW_BY_ROW = "row by row"


def from_one_seed(run: Rehearsing) -> Iterator[Answer]:
    """Rows of the evaluation that are the same numbers as rows of the training: one seed, one place in its sequence.

    Only arrays of rows count: a matrix that both are computed with is shared on purpose."""
    both = sides(run)
    taught: dict[Stream, Path] = {}
    for path in (*both.train, *(_itself(node) for _, node in trained(run) if node.op in DRAWS)):
        stream = _stream(run, path) or _row_by_row(run, path)
        if stream is not None:
            taught.setdefault(stream, path)
    told: set[int] = set()
    for event, path in (*both.held, *((e, _itself(node)) for e, node in evaluated(run) if node.op in DRAWS)):
        stream = (_stream(run, path) or _row_by_row(run, path)) if taught else None
        other = taught.get(stream) if stream is not None else None
        if other is None or other.root is path.root:
            continue
        seeds = stream[1] if stream is not None and isinstance(stream[1], tuple) else ()
        if any("at" in s for s in seeds if isinstance(s, tuple)):
            if (sets := _two_sets(run, path.root, event)) is not None and id(sets[0][0]) not in told:
                told.add(id(sets[0][0]))
                yield Answer(
                    sets[0], "the samples are drawn by their number, and the training has those numbers", sets[1:]
                )
            continue
        shared = {id(at[0]) for at in (*other.root.stack, other.root.place) if at is not None}
        around = (*path.root.stack, path.root.place)
        place = next((at for at in around if at is not None and id(at[0]) not in shared), None)
        if place is None or id(place[0]) in told or not _held(run, place, event):
            continue
        made = next((at for at in (*other.root.stack, other.root.place) if at is not None and at not in around), None)
        if stream is not None and stream[0] == ROW_BY_ROW and not _asked_alike(place, made):
            continue
        told.add(id(place[0]))
        text = "these rows are drawn with the seed of the training data: they are rows that the training has seen"
        yield Answer(place, text, tuple(p for p in (made, event.place) if p is not None))


def _switch(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _two_sets(run: Rehearsing, drawn: Node, event: Event) -> tuple[Place, Place] | None:
    """Of a data set that draws its samples by their number: the one for the evaluation, and that of the training, if
    both are made alike."""
    owner = drawn.place[1].parent if drawn.place is not None else None
    made = [o.place for o in run.objects if o.cls is not None and o.cls.scope is owner and o.place is not None]
    held = [p for p in made if _held(run, p, event)]
    rest = [p for p in made if p not in held]
    return (held[0], rest[0]) if len(held) == len(rest) == 1 and _asked_alike(held[0], rest[0]) else None


def _asked_alike(one: Place, other: Place | None) -> bool:
    """True for two calls that differ in one number at most, that of the rows, and in switches: nothing says which part
    is meant."""
    mine, theirs = one[0], other[0] if other is not None else None
    if not isinstance(mine, ast.Call) or not isinstance(theirs, ast.Call) or len(mine.args) != len(theirs.args):
        return False
    named = [{k.arg: k.value for k in call.keywords} for call in (mine, theirs)]
    switches = [k for k in named[0].keys() ^ named[1].keys() if not _switch({**named[0], **named[1]}[k])]
    if switches or ast.unparse(mine.func) != ast.unparse(theirs.func):
        return False
    pairs = [
        *zip(mine.args, theirs.args, strict=True),
        *((v, named[1][k]) for k, v in named[0].items() if k in named[1]),
    ]
    apart = [pair for pair in pairs if ast.unparse(pair[0]) != ast.unparse(pair[1])]
    apart = [p for p in apart if not all(_switch(n) for n in p)]
    texts = [n for pair in apart for n in pair if isinstance(n, ast.Constant) and type(n.value) is not int]
    return len(apart) <= 1 and not texts


def _itself(node: Node) -> Path:
    """The way of an array that a network is given as it was drawn."""
    return Path(node, (), (node,))


def _held(run: Rehearsing, place: Place, event: Event) -> bool:
    """True where the program calls the data, or what is done with them, a test; and not training data."""
    statement = run.project.statement(*place)
    names = [_word(n) for t in _targets(statement, place[0]) for n in ast.walk(t)]
    calls = [at[0].func for at in event.stack if isinstance(at[0], ast.Call)]
    done = [_word(f) for f in calls]
    if event.place is not None:
        done.append(event.place[1].name)
    return any(HELD.search(w) for w in (*names, *done)) and not any(TRAIN.search(w) for w in names)


def held_out(run: Rehearsing, place: Place) -> bool:
    """True where what a call gives is called data for the evaluation by the program, and not training data."""
    statement = run.project.statement(*place)
    names = [_word(n) for t in _targets(statement, place[0]) for n in ast.walk(t)]
    return any(HELD.search(w) for w in names) and not any(TRAIN.search(w) for w in names)


def _targets(statement: ast.AST | None, made: ast.AST) -> list[ast.expr]:
    """What ``made`` is assigned to, in ``a, b = x, made`` the second."""
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return [statement.target]
    if not isinstance(statement, ast.Assign):
        return []
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return [t for t, v in zip(target.elts, value.elts, strict=True) if any(n is made for n in ast.walk(v))]
    return statement.targets


def _word(node: ast.AST) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _stream(run: Rehearsing, path: Path) -> Stream | None:
    """The seed of the array at the root, what was drawn from it before, and the size of one row; None where the array
    is none of rows, or any of that isn't known."""
    root = path.root
    if root.op not in DRAWS or path.fixed or root.shape.open or not root.shape.dims or not _of_rows(path):
        return None
    begun = seeded(run, root)
    if begun is None:
        return None
    at, maker, seed = begun
    package = root.full.partition(".")[0]
    before = []
    for node in run.nodes:
        if node.serial >= root.serial:
            break
        if node.serial > at and node.op in DRAWS and generator_of(node) is maker:
            if maker is None and node.full.partition(".")[0] != package:
                continue
            before.append((node.op, node.shape.dims, node.shape.open))
    if any(None in dims or spread for _, dims, spread in before):
        return None
    if maker is None and any(is_module(o) and at < o.serial < root.serial for o in run.objects):
        return None  # layers draw their weights from the same generator
    return (seed, package if maker is None else "", tuple(before), root.op, root.shape.dims[1:])


def _row_by_row(run: Rehearsing, path: Path) -> Stream | None:
    """The same for rows that a loop draws one after the other, of whatever size: the line that draws, the seed, and
    what was drawn from it before the loop. Two sets of rows that agree in it begin with the same ones."""
    root = path.root
    begun = seeded(run, root) if root.op in DRAWS and root.turns else None
    if begun is None or root.place is None:
        return _by_number(run, root)
    at, maker, seed = begun
    told = maker if isinstance(maker, Node) else next((e for e in run.tape if e.serial == at), None)
    if maker is None and (told is None or told.place is None or told.place[1] is not root.place[1]):
        return None  # anything may have drawn from the generator of the whole process
    loop = {id(t.node) for t in root.turns} - {id(t.node) for t in getattr(told, "turns", ())}
    before = []
    for node in run.nodes:
        if node.serial >= root.serial:
            break
        elsewhere = node.stack[: len(root.stack)] != root.stack  # the same loop, in another call
        outside = elsewhere or not loop & {id(t.node) for t in node.turns}
        if node.serial > at and node.op in DRAWS and generator_of(node) is maker and outside:
            if None in node.shape.dims or node.shape.open:
                return None
            before.append((node.op, node.shape.dims))
    return (ROW_BY_ROW, seed, id(root.place[0]), tuple(before)) if loop else None


def _by_number(run: Rehearsing, root: Node) -> Stream | None:
    """The same for samples that are drawn with a generator of their own, whose seed is worked out of their number."""
    maker = generator_of(root) if root.op in DRAWS and root.place is not None else None
    if maker is None or root.place is None:
        return None
    told = [e for e in run.tape if e.serial < root.serial and e.name in SEEDED and e.subject is maker]
    given = told[-1].args if told else maker.inputs if isinstance(maker, Node) else getattr(maker, "args", ())
    shape = tuple(_by_place(seed) for seed in given if not isinstance(seed, Obj))
    return (ROW_BY_ROW, shape, id(root.place[0]), ()) if any("at" in s for s in shape) else None


def _by_place(value: Value, depth: int = 0) -> tuple[object, ...]:
    """How a seed is worked out; the number of the sample as "at"; nothing for what isn't known."""
    if isinstance(value, int):
        return (value,)
    if not isinstance(value, Node) or depth > MAX_DEPTH:
        return ("?",)
    if value.op in ("index", "argument"):
        return ("at",)
    inner = [_by_place(i, depth + 1) for i in value.inputs]
    if value.op not in ("add", "sub", "mul", "xor", "int") or any("?" in i for i in inner):
        return ("?",)
    return (value.op, *(part for i in inner for part in i))


MAX_DEPTH = 5


def generator_of(draw: Node) -> Value:
    """The generator that draws; None for that of the whole process."""
    given = draw.options.get("generator")
    if given is not None:
        return given
    return next((i for i in draw.inputs if getattr(i, "op", getattr(i, "name", "")) in SEEDED), None)


def seeded(run: Rehearsing, draw: Node) -> tuple[int, Value, Stream] | None:
    """When the generator of a draw was seeded, the generator, and the seed if it is written out."""
    maker = generator_of(draw)
    if isinstance(maker, Node):
        given = tuple(i for i in maker.inputs if not isinstance(i, Obj))
        return (maker.serial, maker, given) if _written(given) else None
    told = [e for e in run.tape if e.serial < draw.serial and e.name in SEEDED and e.subject is maker]
    if maker is None:
        package = draw.full.partition(".")[0]
        told = [e for e in told if package and e.full.partition(".")[0] == package]
    elif isinstance(maker, Obj) and maker.name in SEEDED and not told:
        return (maker.serial, maker, maker.args) if _written(maker.args) else None
    return (told[-1].serial, maker, told[-1].args) if told and _written(told[-1].args) else None


def same_draw(run: Rehearsing, draw: Node) -> object:
    """The same for two draws that give the same numbers: of one seed, after the same draws; None where the seed isn't
    known. How many are drawn is not asked."""
    begun = _begun(run, draw)
    if begun is None or draw.place is None:
        return None
    at, maker, seed = begun
    package = draw.full.partition(".")[0]
    before = [
        id(n.place[0]) if n.place is not None else 0
        for n in run.nodes
        if at < n.serial <= draw.serial and n.op in DRAWS and generator_of(n) is maker
        and (maker is not None or n.full.partition(".")[0] == package)
    ]  # fmt: skip
    if maker is None and any(is_module(o) and at < o.serial < draw.serial for o in run.objects):
        return None
    numbers = tuple(i for i in draw.inputs if isinstance(i, int | float))
    return (package, tuple(canon(s) for s in seed), tuple(before), numbers)


def _begun(run: Rehearsing, draw: Node) -> tuple[int, Value, Stream] | None:
    """As ``seeded``, also of a seed that isn't written out (the number of a sample)."""
    maker = generator_of(draw)
    if isinstance(maker, Node):
        given = tuple(i for i in maker.inputs if not isinstance(i, Obj))
        return (maker.serial, maker, given) if given else None
    return seeded(run, draw)


def seeding(run: Rehearsing, draw: Node) -> Place | None:
    """Where the generator of a draw got its seed."""
    begun = _begun(run, draw)
    if begun is None:
        return None
    at, maker, _ = begun
    told = maker if isinstance(maker, Node | Obj) else next((e for e in run.tape if e.serial == at), None)
    return told.place if told is not None else None


def _written(seed: tuple[Value, ...]) -> bool:
    return bool(seed) and all(isinstance(s, int) for s in seed)


def _of_rows(path: Path) -> bool:
    """True where the samples are taken one by one along the first axis of the array, or all of them as they are."""
    count = path.root.shape.dims[0]
    if not isinstance(count, int):
        return False
    moving = [s for s in path.steps if s.moving]
    if not moving:
        last = path.nodes[-1].shape
        return not last.open and bool(last.dims) and last.dims[0] == count
    for before, node in zip(path.nodes, path.nodes[1:], strict=False):
        picks = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        picks = picks[0] if isinstance(picks, tuple) and picks else picks
        one_by_one = isinstance(picks, Node) and picks.op in ("index", "counter")
        if node.op == "element" or one_by_one or (isinstance(picks, Obj) and picks.name == "slice"):
            return not before.shape.open and bool(before.shape.dims) and before.shape.dims[0] == count
    return False
