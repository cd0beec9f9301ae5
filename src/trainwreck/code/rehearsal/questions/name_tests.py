"""Parameters that are chosen by their names: does each of the names that the program asks for occur?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import ASKED, NameTest, Place, is_module
from trainwreck.code.rehearsal.questions import Answer

ALIKE = 0.8
"""Share of letters in common (twice the matches over both lengths) from which a name is another one misspelt."""
FEW = 3


def misspelt(run: Rehearsing) -> Iterator[Answer]:
    """A name by which parameters are set free (or frozen) that none of them has, and that is nearly one of theirs."""
    tests: list[NameTest] = run.memo.get(ASKED, [])
    if not tests:
        return
    names = {name for obj in run.objects if is_module(obj) for name, _ in run.named(obj)}
    by_place: dict[int, list[NameTest]] = {}
    for test in tests:
        if _sets_free(run, test.place):
            by_place.setdefault(id(run.project.statement(*test.place)), []).append(test)
    for found in by_place.values():
        asked = {t.wanted for t in found}
        hit = {t.wanted for t in found if t.held}
        texts = {t.text for t in found}
        pieces = {part for name in names for part in (name, *name.split("."))}
        if len(texts & pieces) < FEW or not hit:
            continue
        taken = {p for p in pieces if any(w in p for w in hit)}
        for wanted in sorted(asked - hit):
            near = [p for p in sorted(pieces - taken) if _alike(wanted, p)]
            if near:
                place = _written(run, wanted) or found[0].place
                text = f"no parameter is called '{wanted}': '{near[0]}' stays as it was"
                yield Answer(place, text, (found[0].place,))


def _alike(wanted: str, name: str) -> bool:
    """True for nearly the same letters with the same numbers: ``block3`` is another block than ``block2``."""
    same = re.findall(r"\d+", wanted) == re.findall(r"\d+", name)
    return same and SequenceMatcher(None, wanted, name).ratio() >= ALIKE


def _sets_free(run: Rehearsing, place: Place) -> bool:
    """True if ``requires_grad`` is set to the result of the test, or under it."""
    statement = run.project.statement(*place)
    around = [statement, *(a for a in run.project.ancestors(*place) if isinstance(a, ast.If))]
    return any("requires_grad" in ast.unparse(node) for node in around)


def _written(run: Rehearsing, text: str) -> Place | None:
    found = [
        (n, scope)
        for walked in run.project.walked.values()
        for scope in walked.scopes
        for n in scope.nodes
        if isinstance(n, ast.Constant) and n.value == text
    ]
    return found[0] if len(found) == 1 else None
