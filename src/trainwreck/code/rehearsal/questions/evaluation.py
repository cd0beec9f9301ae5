"""Does the evaluation see what the training saw, scaled alike and undistorted; and which data choose the model?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import HELD, TEST, TRAIN
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import RANDOM, Path, feeding, paths, statistic
from trainwreck.code.scopes import Scope

SCALES = frozenset(["div", "sub", "mul", "add", "log", "log1p", "log2", "log10", "sqrt", "normalize", "standardize"])
"""Operations with which inputs are brought to a scale."""
KEEPS = pattern(r"save|state_dict|deepcopy|checkpoint|best_(model|net|state|weights|params)|patience|stop|wait|bad")


def inputs_of(run: Rehearsing) -> tuple[list[tuple[Event, Path]], list[tuple[Event, Path]]]:
    """What goes into networks from outside, in training and in evaluation, as ways from the arrays."""
    if "inputs" not in run.memo:
        sides: tuple[list[tuple[Event, Path]], list[tuple[Event, Path]]] = ([], [])
        own: dict[int, bool] = {}
        for event in run.tape:
            if event.name != "forward" or not isinstance(event.subject, Obj):
                continue
            training = event.grad_mode and event.state.get("training") is not False
            if not training and any(id(n) in feeding(run) for n in parts(event.result)):
                continue
            for value in (*event.args, *event.options.values()):
                for node in parts(value):
                    if node.grad or node.op == "param":
                        continue
                    if id(node) not in own:
                        own[id(node)] = _of_network(node)
                    if not own[id(node)]:
                        sides[0 if training else 1].extend((event, path) for path in paths(run, node))
        run.memo["inputs"] = sides
    found: tuple[list[tuple[Event, Path]], list[tuple[Event, Path]]] = run.memo["inputs"]
    return found


def _of_network(node: Node) -> bool:
    return any(n.op == "param" or is_module(n.owner) for n in ancestors(node))


# ---------------------------------------------------------------------- scale
def scaled_apart(run: Rehearsing) -> Iterator[Answer]:
    """Inputs that the training scales (by constants, or by statistics) and the evaluation does not, or otherwise.

    Compared are arrays that the same line of the program made, given to the same network at the same place."""
    train, held = inputs_of(run)
    taught: dict[tuple[int, int], list[tuple[Path, tuple[str, ...]]]] = {}
    for event, path in train:
        taught.setdefault((id(event.subject), made_by(path)), []).append((path, _scaling(run, path)))
    judged: dict[tuple[int, int], list[tuple[Path, tuple[str, ...]]]] = {}
    for event, path in held:
        judged.setdefault((id(event.subject), made_by(path)), []).append((path, _scaling(run, path)))
    told: set[int] = set()
    for event, path in held:
        key = (id(event.subject), made_by(path))
        if key not in taught:
            continue
        alike = [p for p, _ in taught[key]]
        mine, others = _scaling(run, path), [scales for _, scales in taught[key]]
        if any(mine == other for other in others) or any("?" in s for s in (mine, *others)):
            continue
        if any(_recurs(p) for p in (*alike, *(p for p, _ in judged[key]))):
            continue
        more = max(others, key=len)
        if len(more) < len(mine) or not all(op in more for op in mine):
            continue
        beside = [p for p, scales in judged[key] if scales == more]
        missing = _missing(more, mine)
        where = _scaled_at(run, alike, more, missing)
        place = _called_at(beside[-1:], more[-1], alike) or _own_place(path, alike) or _last_place(path) or event.place
        if not beside:
            scaled = [p for p in alike if _scaling(run, p) == more]
            place = _only_there(path, scaled, missing, place) or place
        if place is None or id(place[0]) in told:
            continue
        told.add(id(place[0]))
        text = "these inputs are evaluated without the scaling that they have in training"
        yield Answer(place, text, tuple(p for p in (where, event.place) if p is not None))


def _recurs(path: Path) -> bool:
    """True for states that one line makes from those before: how often they are scaled is the number of turns."""
    places = [id(n.place[0]) for _, n in scales_of(path) if n.place is not None]
    return len(set(places)) < len(places)


def made_by(path: Path) -> int:
    """Equal for arrays that the same line of the program made."""
    return id(path.root.place[0]) if path.root.place is not None else id(path.root)


def _missing(more: tuple[str, ...], mine: tuple[str, ...]) -> int:
    """The number of the first operation of ``more`` that has none in ``mine`` to go with; 0 where all have."""
    left = list(mine)
    for number, op in enumerate(more):
        if op not in left:
            return number
        left.remove(op)
    return 0


def _scaling(run: Rehearsing, path: Path) -> tuple[str, ...]:
    """The scaling on the way, in order, without what is random or depends on other data."""
    known: dict[int, tuple[Path, tuple[str, ...]]] = run.memo.setdefault("scaling", {})
    if id(path) not in known:  # many forwards take one array; the path is kept so that no other gets its id
        known[id(path)] = (path, tuple(op for op, _ in scales_of(path)))
    return known[id(path)][1]


def scales_of(path: Path) -> list[tuple[str, Node]]:
    found: list[tuple[str, Node]] = []
    after = [*path.nodes[2:], None]
    for node, before, following in zip(path.nodes[1:], path.nodes, after, strict=False):
        if node.op in ("transform", "fit_transform") and node.owner is not None:
            found.append(("transform", node))
        if node.op == "setitem" and not any(p is before for i in node.inputs[:2] for p in parts(i)):
            found.clear()  # until here it was a place in an array: counted, not scaled
        if node.op not in SCALES:
            continue
        rest = [i for i in node.inputs if i is not before]
        if any(isinstance(i, Node) and not statistic(i) and not _constant(i) for i in rest):
            continue
        if node.op in ("mul", "div") and (_masked(before) or (following is not None and _masked(following))):
            continue  # it makes up for what a random mask takes away
        found.append((node.op, node))
    return [s for s in found if not any(_given_back(s[1], o) or _given_back(o, s[1]) for _, o in found)]


def _given_back(off: Node, on: Node) -> bool:
    """True for what is taken off and added again: only what lies between changes."""
    if off.op != "sub" or on.op != "add" or len(off.inputs) < 2:
        return False
    return isinstance(off.inputs[1], Node) and any(i is off.inputs[1] for i in on.inputs)


def _masked(node: Node) -> bool:
    """True for a product with a mask of zeros and ones that is drawn anew."""
    masks = (near(i, 6) for i in node.inputs[:2] if isinstance(i, Node)) if node.op == "mul" else ()
    compared = frozenset(["lt", "le", "gt", "ge", "bernoulli"])
    return any(any(n.op in compared for n in m) and any(n.op in RANDOM for n in m) for m in masks)


def _constant(node: Node) -> bool:
    return node.op in ("tensor", "array", "full", "ones", "zeros", "as_tensor") and not any(
        isinstance(n, Node) for i in node.inputs for n in parts(i)
    )


def _only_there(path: Path, others: Sequence[Path], number: int, place: Place | None) -> Place | None:
    """Where the training alone is scaled, if that is what is to change: a branch of code that both run through, or a
    statement of its own after both arrays were made, of which the evaluation's has none."""
    mine = {id(at[0]): at for n in path.nodes for at in (n.place, *n.stack) if at is not None}
    root = {id(at[0]) for at in (path.root.place, *path.root.stack) if at is not None}
    for other in others:
        node = scales_of(other)[number][1]
        if node.place is None:
            continue
        theirs = {id(at[0]) for n in other.nodes for at in (n.place, *n.stack) if at is not None}
        both = {id(at[1]) for key, at in mine.items() if key in theirs and at[1].kind == "function"}
        around = [at for at in (node.place, *reversed(node.stack)) if id(at[0]) not in mine]
        branch = next((at for at in around if id(at[1]) in both), None)
        if branch is not None:
            return branch
        if place is not None and id(place[0]) in root:
            return next((at for at in around if at[1] is place[1]), None)
    return None


def _called_at(scaled: Sequence[Path], op: str, others: Sequence[Path]) -> Place | None:
    """Where other data of the evaluation are scaled, and those of the training are not: a call of the scaler."""
    shared = _places(others)
    for path in scaled:
        for node in reversed(path.nodes):
            if node.turns:
                continue
            if node.op == op or (op == "transform" and node.op == "fit_transform"):
                return _apart(node, shared)
    return None


def _own_place(path: Path, others: Sequence[Path]) -> Place | None:
    """The last place on the way that the training's data do not come through."""
    shared = _places(others)
    nodes = [n for n in reversed(path.nodes) if n.op not in ("batch", "element", "part", "index")]
    inside = next((n.place for n in nodes if n.turns and n.place is not None and id(n.place[0]) not in shared), None)
    before = [n for n in nodes if not n.turns]
    return inside or next((place for n in before if (place := _apart(n, shared)) is not None), None)


def _places(found: Sequence[Path]) -> set[int]:
    return {id(at[0]) for p in found for n in p.nodes for at in (n.place, *n.stack) if at is not None}


def _apart(node: Node, shared: set[int]) -> Place | None:
    """The innermost call around a value that is none of ``shared``."""
    around = (node.place, *reversed(node.stack))
    return next((place for place in around if place is not None and id(place[0]) not in shared), None)


def _last_place(path: Path) -> Place | None:
    for node in reversed(path.nodes):
        if node.place is not None and node.op not in ("batch", "element", "part", "index"):
            return node.place
    return path.nodes[-1].place if path.nodes else None


def _scaled_at(run: Rehearsing, found: Sequence[Path], more: tuple[str, ...], number: int) -> Place | None:
    """Where the training has the operation of this number."""
    return next((scales_of(p)[number][1].place for p in found if _scaling(run, p) == more and more), None)


# ---------------------------------------------------------------------- selection
def chosen_on_test(run: Rehearsing) -> Iterator[Answer]:
    """A model (or a setting) that is kept because of its score on what the program itself calls test data."""
    told: set[int] = set()
    for node in run.nodes:
        test = node.attributes.get("?test")
        if node.op != "either" or not isinstance(test, Node) or test.op not in ("gt", "lt", "ge", "le"):
            continue
        decided = branch_of(run, node)
        if decided is None or id(decided[0]) in told:
            continue
        branch = decided[0]
        scores = scores_of(test, node)
        body = " ".join(written(s) for s in branch.body).lower()
        if not scores or not (KEEPS.search(body) or keeps_module(branch)):
            continue
        for score in scores:
            calls = [place for n in near(score, 400) if n.place is not None for place in (*n.stack, n.place)]
            given = _given_test(run, node)
            named = given or [p for p in dict.fromkeys(calls) if names_test(p)] or _reported(run, score)
            if not named or (not given and any(_names_other(place) for place in dict.fromkeys(calls))):
                continue
            told.add(id(branch))
            text = "this is measured on the test data, and decides what is kept"
            yield Answer(named[-1], text, (decided,))
            break


def _given_test(run: Rehearsing, kept: Node) -> list[Place]:
    """The call that is given test data, and no others that are held out, and inside of which it is decided what is
    kept: whatever the data are called in there. Or that which makes the object whose method it is."""
    for place in kept.stack:
        for call, scope in (place, *_makers(run, place)):
            given = call.args if isinstance(call, ast.Call) else []
            words = [last_name(a).lower() for a in given if isinstance(a, ast.Name | ast.Attribute)]
            tested = any(TEST.search(w) for w in words)
            if tested and any(TRAIN.search(w) for w in words) and not _names_other((call, scope)):
                return [(call, scope)]
    return []


def _makers(run: Rehearsing, place: Place) -> Iterator[Place]:
    """Where the object is made whose method is called: ``probe = Trainer(net, train, valid)`` of ``probe.fit()``."""
    call, scope = place
    owner = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Name):
        found = [b for b in run.project.lookup(owner.id, scope) if b.kind == "assign" and not b.path]
        last = max((b for b in found if b.line <= getattr(call, "lineno", 0)), key=lambda b: b.line, default=None)
        if last is not None and isinstance(last.value, ast.Call):
            yield last.value, last.scope


def _reported(run: Rehearsing, score: Node) -> list[Place]:
    """Where a score is measured on the test part of a known data set that the program reports its result on as well,
    behind the loop that chooses."""
    batches = [n for n in near(score, 400) if n.op == "batch" and isinstance(n.owner, Obj)]
    tested = {id(b.owner) for b in batches if b.owner is not None and _test_part(b.owner.get("dataset", 0))}
    for event in run.tape:
        if event.name == "forward" and not event.grad_mode and not any(t in score.turns for t in event.turns):
            again = any(id(n.owner) in tested for a in event.args for p in parts(a) for n in near(p, 60))
            if again and event.serial > score.serial:
                asked = score.stack[0] if score.stack else score.place
                return [asked] if asked is not None else []
    return []


def _test_part(dataset: Value) -> bool:
    """``MNIST(root, train=False)``, ``SVHN(root, split="test")``."""
    if not isinstance(dataset, Obj) or not dataset.kind.startswith("torchvision.datasets."):
        return False
    return dataset.options.get("train") is False or dataset.options.get("split") == "test"


def branch_of(run: Rehearsing, kept: Node) -> tuple[ast.If, Scope] | None:
    """The branch that leaves a value, which is a name's or an attribute's, as it was or gives it another."""
    if kept.place is None:
        return None
    node, scope = kept.place
    above = node if isinstance(node, ast.If) else None
    above = above or next((a for a in run.project.ancestors(node, scope) if isinstance(a, ast.If)), None)
    return (above, scope) if above is not None else None


def scores_of(test: Node, kept: Node) -> list[Node]:
    """The sides of a test that are kept where it holds, also where they are worked out once more for that."""
    return [i for i in test.inputs if isinstance(i, Node) and any(_alike(i, c) for c in kept.inputs)]


def _alike(one: Node, other: Value, depth: int = 0) -> bool:
    if one is other:
        return True
    if not isinstance(other, Node) or one.op != other.op or not one.inputs or len(one.inputs) != len(other.inputs):
        return False
    if depth > 4 or one.op in RANDOM or one.turns != other.turns or one.options.keys() != other.options.keys():
        return False
    pairs = zip(one.inputs, other.inputs, strict=True)
    return all(
        a is b or (isinstance(a, Node) and _alike(a, b, depth + 1)) or (a == b and not isinstance(a, Node))
        for a, b in pairs
    )


def keeps_module(branch: ast.If) -> bool:
    """True where the branch assigns something that is a module."""
    names = {n.id for s in branch.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return any(re.search(r"model|net|trial|config|setting|params|policy|agent", name.lower()) for name in names)


def _arguments(place: Place) -> str:
    """What a call is given, or by what rows are taken: ``pred[te]``, ``logits[data.test_mask]``."""
    node = place[0]
    if isinstance(node, ast.Call):
        given = [*node.args, *(k.value for k in node.keywords)]
    else:
        given = [node.slice] if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice) else []
    text = " ".join(BOUNDS.sub("", written(a)) for a in given)  # how many rows a part has says nothing of the part
    return text.lower().replace('"', " ").replace("'", " ")


BOUNDS = re.compile(r"\[[^\[\]]*:[^\[\]]*\]")


def names_test(place: Place) -> bool:
    words = re.findall(r"[a-z_]+", _arguments(place))
    return any(TEST.search(word) for word in words)


def _names_other(place: Place) -> bool:
    words = re.findall(r"[a-z_]+", _arguments(place))
    return any(HELD.search(word) and not TEST.search(word) and word not in ("eval",) for word in words)


__all__ = [
    "KEEPS",
    "branch_of",
    "chosen_on_test",
    "inputs_of",
    "keeps_module",
    "names_test",
    "scaled_apart",
    "scores_of",
]
