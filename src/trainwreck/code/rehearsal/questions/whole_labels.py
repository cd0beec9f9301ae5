"""Labels of all rows in the loss, where those of some rows are held out to judge the outputs (nodes of one graph)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import HELD, TRAIN
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import RANDOM, Path, feeding, key_of, paths
from trainwreck.code.rehearsal.questions.roles import backwards, given, users

CLASSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")
ERRORS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
SCORES = frozenset(
    """accuracy_score f1_score balanced_accuracy_score roc_auc_score mean_squared_error mean_absolute_error r2_score
    root_mean_squared_error""".split()
)
JUDGES = SCORES | {"eq", "ne", "sub", *ERRORS, *CLASSES}
CHANGED = frozenset("setitem where masked_fill either masked_fill_ index_fill_ index_copy scatter clone_ copy_".split())
"""What may take the labels of some rows out."""


def held_out_labels(run: Rehearsing) -> Iterator[Answer]:
    """A loss that averages over every row, before a score of some of these rows that are said to be held out.

    A score before it is of another fit: the last one, after the choice was made, may take all rows."""
    judged = list(_judged(run))
    told: set[int] = set()
    learned = {id(n): n for e in backwards(run) for n in ancestors(e.subject) if _is_loss(run, n)} if judged else {}
    for loss in learned.values():
        weighed = loss.owner.options if loss.owner is not None else {}
        options = {**weighed, **loss.options}
        if options.get("reduction", "mean") not in ("mean", "sum") or options.get("ignore_index") is not None:
            continue
        target = given(loss, "target", 1) if loss.op != "sub" else _outside(loss)
        if loss.place is None or id(loss.place[0]) in told:
            continue
        if loss.op.startswith("binary") and isinstance(given(loss, "weight", 2), Node):
            continue  # each row has its weight, and it may be zero
        for way in (w for node in parts(target) for w in _ways(run, node)):
            seen = next((j for j, held in judged if j.serial > loss.serial and _same(held.root, way.root)), None)
            if seen is not None and not way.steps and not any(n.op in CHANGED for n in way.nodes):
                told.add(id(loss.place[0]))
                text = "the loss takes the labels of all rows, those among them that are held out for the evaluation"
                yield Answer(loss.place, text, (seen.place,) if seen.place is not None else ())
                break
            later = [(j, held) for j, held in judged if j.serial > loss.serial and _same(held.root, way.root)]
            masks = {id(m): m for _, held in later for m in _masks(held)}
            mine = _masks(way)
            met = next((j for j, held in later for h in _masks(held) if _covered(mine, h, masks)), None)
            if met is not None:
                told.add(id(loss.place[0]))
                text = "the mask of this loss holds rows as well that are held out for the evaluation"
                yield Answer(loss.place, text, (met.place,) if met.place is not None else ())
                break


def _masks(way: Path) -> list[Node]:
    return [s.index for s in way.steps if isinstance(s.index, Node)]


def _covered(mine: list[Node], held: Node, judged: dict[int, Node]) -> bool:
    """True where the rows of a mask of the evaluation are among those of the training: ``train | valid``, or all that
    another part, which is evaluated as well, leaves."""
    for mask in mine:
        parts_of = [i for i in mask.inputs if isinstance(i, Node)]
        if mask.op in ("or", "logical_or", "bitwise_or") and (held in parts_of or _covered(parts_of, held, judged)):
            return True
        turned = mask.op in ("invert", "logical_not", "not") and len(parts_of) == 1
        if turned and parts_of[0] is not held and id(parts_of[0]) in judged and _filled(parts_of[0]) and _filled(held):
            return True
    return False


def _is_loss(run: Rehearsing, node: Node) -> bool:
    """A loss of the library, or a difference from an output that is squared and averaged by hand, all of it."""
    if node.op != "sub" or not node.grad:
        return node.op in (*CLASSES, *ERRORS)
    squares = users(run).get(id(node), [])
    powers = all(s.op in ("pow", "square", "abs") or (s.op == "mul" and s.inputs[0] is s.inputs[1]) for s in squares)
    totals = [t.op for s in squares for t in users(run).get(id(s), ())]
    return powers and bool(totals) and set(totals) <= {"mean", "sum"} and _outside(node) is not None


def _outside(node: Node) -> Node | None:
    """The one side of a difference that is no output; None where both are, or neither is."""
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    plain = [s for s in sides if not s.grad]
    return plain[0] if len(sides) == 2 and len(plain) == 1 else None


def _ways(run: Rehearsing, target: Node) -> list[Path]:
    """Labels that were drawn (of a graph that is made up) are data too."""
    return paths(run, target) or ([Path(target, (), (target,))] if target.op in RANDOM else [])


def _judged(run: Rehearsing) -> Iterator[tuple[Node, Path]]:
    """Comparisons of outputs with the labels of rows that are named as held out, and the way of these labels."""
    used = feeding(run)
    for node in run.nodes:
        if node.op not in JUDGES or id(node) in used or len(node.inputs) < 2 or not _said_held(run, node):
            continue
        sides = [s for i in node.inputs[:2] for s in parts(i)]
        learned = [any(n.op in ("param", "call") for n in ancestors(s)) for s in sides]
        if len(sides) == 2 and sum(learned) == 1:
            labels = sides[learned.index(False)]
            yield from ((node, way) for way in paths(run, labels) if way.fixed or _by_mask(way))


def _by_mask(way: Path) -> bool:
    """True for rows by a mask that an object holds (``data.test_mask``), or that was filled in before the training."""
    return any(isinstance(s.index, Node) and (s.index.op == "attribute" or _filled(s.index)) for s in way.steps)


def _filled(mask: Node) -> bool:
    """``mask = zeros(n, dtype=bool); mask[rows] = True``, also in a loop that makes several of them."""
    at: Node | None = mask
    while at is not None and at.op in ("setitem", "index_fill", "index_fill_") and at.inputs:
        at = at.inputs[0] if isinstance(at.inputs[0], Node) else None
    return at is not None and at is not mask and at.op in ("zeros", "ones", "full", "zeros_like", "ones_like")


def _same(one: Node, other: Node) -> bool:
    """True for one array, also where it is read off one object twice (``data.y``)."""
    return one is other or (one.op == other.op == "attribute" and key_of(one) == key_of(other))


def _said_held(run: Rehearsing, node: Node) -> bool:
    """True where the statement of the comparison, or that of the call which led to it, speaks of held out rows."""
    words: set[str] = set()
    for place in (*node.stack[-1:], node.place):
        statement = run.project.statement(*place) if place is not None else None
        if place is None or isinstance(statement, ast.FunctionDef | ast.For | ast.While | ast.If | ast.With | None):
            continue
        own = _words(statement)
        above = run.project.parent(statement, place[1])
        if isinstance(above, ast.For) and own & _words(above.target):
            own |= _words(above.iter)  # ``for name, rows in {"val": val, "test": test}.items()``
        words |= own
    return any(HELD.search(w) and not TRAIN.search(w) for w in words)


def _words(tree: ast.AST) -> set[str]:
    """Names and texts in a piece of the program, in lower case."""
    found: set[str] = set()
    for part in ast.walk(tree):
        match part:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str() as word):
                found.add(word.lower())
    return found


__all__ = ["held_out_labels"]
