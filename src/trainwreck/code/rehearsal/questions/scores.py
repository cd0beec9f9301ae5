"""Scores of an evaluation: along which axis the answer is chosen, and over which axis it is counted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.facts import source
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along, batch_first
from trainwreck.code.rehearsal.questions.roles import JOINS, RAW, STRUCTURE, core, trained, users

MACRO = pattern(r"macro(?![a-z])|per[_ -](class|tag|label|category)|by[_ -](class|tag|label)", re.IGNORECASE)
"""Words for a score of each class, and its mean over the classes."""
EACH = pattern(
    r"average\W+samples|(per|by|each|every)[_ -](sample|example|image|document|row|instance)|example[_ -]based|"
    r"samples?[_ -]f1|sample_?wise|instance_?wise|f1[_ -]samples?",
    re.IGNORECASE,
)
"""Words for a score of each sample."""
HITS = frozenset(["and", "mul", "logical_and", "bitwise_and"])
COUNTED = frozenset("add sub mul div clamp clamp_min maximum float double to sum nan_to_num".split())


def chosen_among_samples(run: Rehearsing) -> Iterator[Answer]:
    """The largest output is taken over the samples of the batch and compared with labels."""
    for node in run.nodes:
        if node.op not in ("argmax", "max") or node.place is None or node.grad or not node.inputs:
            continue
        scores = node.inputs[0]
        if along(node) != 0 or not isinstance(scores, Node) or scores.shape.open or len(scores.shape.dims) != 2:
            continue
        outputs = bool(core(scores)) and all(n.op in RAW or n.op in ("softmax", "sigmoid") for n in core(scores))
        if outputs and by_sample(scores) and compared(run, node):
            yield Answer(node.place, "the largest value is taken over the batch, not over the classes")


def compared(run: Rehearsing, node: Node, depth: int = 0) -> bool:
    """True where the value, selected or reshaped, is held against another: ``== y``."""
    for user in users(run).get(id(node), ()):
        if user.op in ("eq", "ne"):
            return True
        if depth < 6 and (user.op in STRUCTURE or user.op in ("part", "append")) and compared(run, user, depth + 1):
            return True
    return False


def chosen_along_another(run: Rehearsing) -> Iterator[Answer]:
    """Maps of scores whose classes the loss expects on axis 1, and whose largest is taken along another one."""
    forwards = [e for e in run.tape if e.name == "forward" and isinstance(e.result, Node)]
    given = {id(e.result): e.subject for e in forwards}
    learned = {
        id(given[id(n.inputs[0])])
        for n in trained(run)
        if n.op in ("cross_entropy", "nll_loss") and n.inputs and id(n.inputs[0]) in given and _map(n.inputs[0])
    }
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in ("argmax", "max") or node.grad or not node.inputs or node.place is None:
            continue
        scores, axis = node.inputs[0], along(node)
        if id(given.get(id(scores))) not in learned or not _map(scores) or not isinstance(axis, int):
            continue
        if axis % len(scores.shape.dims) != 1 and id(node.place[0]) not in told:
            told.add(id(node.place[0]))
            yield Answer(node.place, f"the classes lie on axis 1 here, and the largest is taken along axis {axis}")


def _map(value: Value) -> bool:
    """True for scores with further axes behind that of the classes."""
    return isinstance(value, Node) and not value.shape.open and len(value.shape.dims) > 2


def counted_by_sample(run: Rehearsing) -> Iterator[Answer]:
    """What is called a mean over the classes averages a ratio of counts that were summed over the classes."""
    text = source(run.project)
    if not MACRO.search(text) or EACH.search(text):
        return
    told: set[int] = set()
    for node in run.nodes:
        if node.op != "mean" or not node.inputs or along(node) not in (None, 0) or node.grad:
            continue
        ratio = _ratio(node.inputs[0])
        for hits in _counts(ratio) if ratio is not None else ():
            if hits.place is not None and id(hits.place[0]) not in told:
                told.add(id(hits.place[0]))
                yield Answer(
                    hits.place, "hits are counted over the classes of a sample, not over the samples of a class"
                )
                return


def _ratio(value: Value) -> Node | None:
    for _ in range(8):
        if not isinstance(value, Node):
            return None
        if value.op == "div":
            return value
        inner = [i for i in value.inputs[:2] if isinstance(i, Node)]
        if value.op not in STRUCTURE | COUNTED or len(inner) != 1:
            return None
        value = inner[0]
    return None


def _counts(ratio: Node) -> Iterator[Node]:
    """The sums over axis 1 of hits: (samples, classes) where output and label agree."""
    for node in ancestors(ratio.inputs[0], through=lambda n: n.op in STRUCTURE | COUNTED and n.op != "sum"):
        if node.op != "sum" or along(node) not in (1, -1) or not node.inputs or not isinstance(node.inputs[0], Node):
            continue
        hits = node.inputs[0]
        for _ in range(3):
            if hits.op in STRUCTURE and hits.inputs and isinstance(hits.inputs[0], Node):
                hits = hits.inputs[0]
        sides = [i for i in hits.inputs[:2] if isinstance(i, Node)]
        if hits.op not in HITS or len(sides) != 2 or hits.shape.open or len(hits.shape.dims) != 2:
            continue
        learnt = [any(n.op == "param" for n in ancestors(s)) for s in sides]
        if learnt.count(True) == 1 and all(_marked(s) for s in sides) and any(by_sample(s) for s in sides):
            yield node


def _marked(value: Node) -> bool:
    """Yes or no for each, or labels that are loaded or chosen so."""
    made = [n for n in core(value)]
    return bool(made) and (
        any(n.op in ("gt", "ge", "lt", "le", "eq", "round", "bool") for n in made)
        or all(not any(i.op == "param" for i in ancestors(n)) for n in made)
    )


def by_sample(value: Value, depth: int = 0) -> bool:
    """True where axis 0 is sure to be that of the samples, of a part of a data set or of all parts joined."""
    if not isinstance(value, Node) or depth > 30:
        return False
    if batch_first(value):
        return True
    if value.op in JOINS and along(value) in (None, 0):
        return any(by_sample(n, depth + 1) for n in _items(value))
    if value.op in (
        "gt",
        "ge",
        "lt",
        "le",
        "sigmoid",
        "round",
        "cpu",
        "numpy",
        "float",
        "int",
        "bool",
        "long",
        "detach",
    ):
        return by_sample(value.inputs[0] if value.inputs else None, depth + 1)
    if value.op in RAW:
        return not value.shape.open and len(value.shape.dims) == 2 and len(value.inputs) > 1
    return False


def _items(node: Node) -> list[Value]:
    first = node.inputs[0] if node.inputs else None
    return list(first) if isinstance(first, tuple) else list(getattr(first, "items", ()))
