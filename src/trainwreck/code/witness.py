"""Run the rules over the program, trace failures back to where they were made, name places for causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainwreck.code.choice import of_sign, possible
from trainwreck.code.project import Project
from trainwreck.code.read import build
from trainwreck.code.rule import Rule
from trainwreck.code.surface import Surface, surfaces
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.program import Problem, Program

if TYPE_CHECKING:
    from trainwreck.core.failure import Failure

__all__ = ["StaticSightings", "build", "witness"]

PER_RULE = 50
"""Sightings of one rule in one file that are told; more of the same help nobody."""


@dataclass
class StaticSightings:
    """What the code shows. ``problems`` are files, or cells, that could not be analysed."""

    evidence: Sequence[Evidence] = ()
    observed: frozenset[str] = frozenset()
    problems: Sequence[Problem] = ()
    broken: Sequence[str] = ()
    project: Project | None = field(default=None, repr=False)
    surfaces: Sequence[Surface] = field(default=(), repr=False)

    def place(self, sign: str) -> Where | None:
        """Where the code decides what the rule of ``sign`` is about, None where it can't say."""
        if self.project is None:
            return None
        for rule in of_sign(sign):
            if (where := self._place_of(rule, self.project)) is not None:
                return where
        return None

    def _place_of(self, rule: Rule, project: Project) -> Where | None:
        fitting = [s for s in self.surfaces if rule.speaks_of(s)]
        for surface in [*fitting, None]:
            for way in (rule.trace if surface is not None else None, rule.locate):
                if way is None:
                    continue
                for item in _guarded(rule, way(project, surface), []):  # type: ignore[arg-type]
                    return item.where
        return None


def witness(
    program: Program,
    failures: Sequence[Failure] = (),
    *,
    targets: Mapping[str, str] | None = None,
    assume_newest: bool = True,
) -> StaticSightings:
    """Sightings of the rules, and for each failure the place where the failing value was made. Never raises.

    ``targets``: versions to check against, by package. ``assume_newest``: without one, and without a pin in the
    project, the newest release counts.
    """
    if not program.modules and not program.others:
        return StaticSightings(problems=program.problems)
    project = Project(program, targets, assume_newest=assume_newest)
    broken: list[str] = []
    seen = surfaces(project, failures)
    evidence: dict[tuple[object, ...], Evidence] = {}
    for rule in possible(project, tracing=bool(seen)):
        for surface in seen:
            if rule.trace is not None and rule.speaks_of(surface):
                for item in _guarded(rule, rule.trace(project, surface), broken):
                    evidence.setdefault((item.sign, item.where.path, item.where.line), item)
                    break
        if rule.find is not None:
            told: Counter[str | None] = Counter()
            for item in _guarded(rule, rule.find(project), broken):
                told[item.where.path] += 1
                if told[item.where.path] > PER_RULE:
                    continue
                # one line may hold several outdated arguments, each with its own fix
                column = (item.where.column,) if item.severity is not None else ()
                evidence[(item.sign, item.where.path, item.where.line, *column)] = item
    observed = frozenset({"code"}) if program.modules else frozenset[str]()
    problems = [*project.problems, *_defects(broken, program)]
    return StaticSightings(list(evidence.values()), observed, problems, broken, project, seen)


def _defects(broken: Sequence[str], program: Program) -> Iterator[Problem]:
    """Rules that failed, as problems: silence would look like a clean program. Which file it was is not known."""
    files = [*program.modules, *(source.name for source in program.others)]
    more = " or another of its program" if len(files) > 1 else ""
    for said in broken:
        module, kind, *_ = said.split(": ")
        name = module.rsplit(".", 1)[-1].replace("_", "-")
        yield Problem(
            files[0],
            f"the rule {name} failed on this file{more} ({kind}), every other one was applied; "
            "a fault of ours, please report it with the file",
        )


def _guarded(rule: Rule, sightings: Iterator[Evidence], broken: list[str]) -> Iterator[Evidence]:
    """The sightings of a rule up to its end or its first error: one rule must not stop the diagnosis."""
    try:
        yield from sightings
    except Exception as problem:  # a defect of one rule on strange code
        broken.append(f"{rule.name}: {type(problem).__name__}: {problem}")
