"""What a run saw, put at the lines of the program where it is decided.

A recorder sees a fault where it works: at the backward, at a module, in a number. Here the sources tell where that
number is written, where that module is made, where the graph is cut. The line of the program becomes the place of the
sighting; where it was seen stays as a second sighting of the same sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.run import Run
from trainwreck.joining.places import Place, Question, answer

__all__ = ["join"]


def join(evidence: Sequence[Evidence], runs: Sequence[Run], project: Project | None) -> list[Evidence]:
    """``evidence`` with the sightings of a recording moved to their lines. Never raises: what can't be placed stays."""
    if project is None or not project.walked:
        return list(evidence)
    found: list[Evidence] = []
    for item in evidence:
        found += _placed(item, runs, project) if item.where.module or item.value or item.where.line else [item]
    return found


def _placed(item: Evidence, runs: Sequence[Run], project: Project) -> list[Evidence]:
    try:
        place = answer(Question(project, item, runs))
    except Exception:  # strange code must not cost the answer
        place = None
    if place is None or (place.path, place.line) == (item.where.path, item.where.line):
        return [item]
    return [_at(item, place), _seen(item)] if item.where.line else [_at(item, place)]


def _at(item: Evidence, place: Place) -> Evidence:
    where = replace(item.where, kind="code", path=place.path, line=place.line, column=None, cell=None)
    text = f"{item.text} ({place.text}: {place.path}:{place.line})"
    return replace(item, where=where, text=text)


def _seen(item: Evidence) -> Evidence:
    """The sighting where it was made: a place that shows the fault, and not the one to fix."""
    where = Where("tensor", item.where.path, item.where.line, step=item.where.step, module=item.where.module)
    return replace(item, where=where)
