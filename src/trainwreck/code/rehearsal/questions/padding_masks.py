"""Masks over padding that torch's layers of attention are given, worked out for a sentence that ends with padding."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained
from trainwreck.code.rehearsal.questions.visibility import FLIPS, LENGTH, STACKS, handed, sizes_of
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown

PADDED = pattern(r"pad|empty|blank")
KEPT = pattern(r"keep|valid|real|attention|attn|present|tokens?_?mask|exists")
"""Names of masks that are true on padding, and of those that are true on tokens."""


def padded(number: float) -> Callable[[Node], Array | None]:
    """Sequences of which the last ends with two tokens of this number, with lengths to match."""

    def leaf(node: Node) -> Array | None:
        import numpy as np

        if node.grad or node.op in ("param", "option", "unknown"):
            return None
        sizes = sizes_of(node)
        if len(sizes) == 1:
            lengths = np.full(sizes, LENGTH)
            lengths[-1] -= 2
            return lengths
        made = np.full(sizes, number + 3)
        if len(sizes) == 2:
            made[-1, -2:] = number
        return made

    return leaf


def padding_kept(run: Rehearsing) -> Iterator[Answer]:
    """What is padding is seen, and the tokens are hidden."""
    for node in trained(run):
        if node.op not in STACKS or node.place is None:
            continue
        words = [
            (STACKS[node.op][2], STACKS[node.op][3]),
            ("memory_key_padding_mask", 7 if node.op == "transformer" else 5),
        ]
        if node.op == "transformer":
            words.append(("src_key_padding_mask", 5))
        for word, place in words:
            mask = handed(node, word, place)
            if isinstance(mask, Node) and (
                word in node.options or node.op in ("transformer",) or word == STACKS[node.op][2]
            ):
                where = _turned(run, node, mask)
                if where is not None:
                    proof = (node.place,) if where[0] is not node.place[0] else ()
                    yield Answer(where, f"{word} hides what is True, and the tokens are True here", proof)


def _turned(run: Rehearsing, node: Node, mask: Node) -> Place | None:
    """Where the mask is made the wrong way round."""
    tests = [n for n in ancestors(mask, through=lambda n: not n.grad) if n.op in ("eq", "ne") and len(n.inputs) == 2]
    numbers = {n.inputs[1] for n in tests if type(n.inputs[1]) is int}
    if len(tests) != 1 or len(numbers) != 1:
        return None
    try:
        bench = Bench(leaf=padded(numbers.pop()))
        hidden = bench.work(mask)
        np = bench.np
    except Unknown:
        return None
    if hidden.ndim != 2 or hidden.dtype != bool or hidden.shape[1] < 3:
        return None
    pads = np.zeros(hidden.shape, bool)
    pads[-1, -2:] = True
    if not (hidden == ~pads).all() or tests[0].place is None:
        return None
    flip = next((n.place for n in ancestors(mask, through=lambda n: n is not tests[0]) if n.op in FLIPS), None)
    called = _named(run, tests[0])
    expects = "eq" if PADDED.search(called) else "ne" if KEPT.search(called) else ""
    if expects and tests[0].op == expects:
        return flip or node.place
    return tests[0].place


def _named(run: Rehearsing, node: Node) -> str:
    """The name that a value is given, as far as it is one."""
    if node.place is None:
        return ""
    statement = run.project.statement(*node.place)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return " ".join(written(t) for t in targets)
