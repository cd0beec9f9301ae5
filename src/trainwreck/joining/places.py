"""For each sign of a recording the question that its place is the answer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainwreck.code.literals import written_as
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence
from trainwreck.core.run import Run
from trainwreck.joining import cuts, data, parts, statements


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the program, and what is done there in a few words."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A sighting that wants its place."""

    project: Project
    item: Evidence
    runs: Sequence[Run]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the sighting holds beside its text."""
        return self.item.value if isinstance(self.item.value, dict) else {}


def answer(question: Question) -> Place | None:
    """The place of a sighting, None where its own is the best there is."""
    for way in WAYS.get(question.item.sign, ()):
        place = way(question)
        if place is not None:
            return place
    return None


def _number(question: Question) -> Place | None:
    """The constant in the program that gave a number of the run."""
    facts = question.facts
    value, names = facts.get("number"), facts.get("names")
    if not isinstance(value, int | float) or not isinstance(names, list) or not names:
        return None
    found = written_as(question.project, float(value), [str(n) for n in names])
    if found is None:
        return None
    return Place(found.scope.module.path, found.line, f"{value:g} is written here")


def _cut(question: Question) -> Place | None:
    """The line between a module and the loss that leaves the graph behind."""
    frames = question.facts.get("frames")
    frames = frames if isinstance(frames, list) else []
    found = cuts.find(question.project, [(str(f[0]), int(f[1])) for f in frames if len(f) == 2])
    return _at(found, "the graph ends here")


def _module(question: Question) -> Place | None:
    """The line that makes the module of the sighting."""
    found = parts.made(question.project, question.item.where.module or "")
    return _at(found, "the module is made here")


def _start(question: Question) -> Place | None:
    """The line that gives the module its first values."""
    found = parts.initialised(question.project, question.item.where.module or "")
    return _at(found, "its first values are set here")


def _sample(question: Question) -> Place | None:
    """Data that is not finite: the line of the data set that can make it so."""
    if question.facts.get("sources"):
        return None
    found = data.births(question.project)
    return _at(found, "samples are computed here")


def _target(question: Question) -> Place | None:
    """Where the target of the loss gets its values."""
    where = question.item.where
    found = data.target(question.project, where.path, where.line)
    return _at(found, "the target is given here")


def _loop(question: Question) -> Place | None:
    """The head of the loop around a line."""
    where = question.item.where
    found = parts.loop(question.project, where.path, where.line)
    return _at(found, "the loop of the training")


def _adapter(question: Question) -> Place | None:
    """Where adapters are made and would be put in."""
    found = parts.constructed(question.project, question.item.where.module or "")
    return _at(found, "the module is constructed here")


def _attribute(question: Question) -> Place | None:
    """The line that sets an attribute of the module's class."""
    name = question.facts.get("attribute")
    found = parts.attribute(question.project, str(name)) if isinstance(name, str) else None
    return _at(found, f"{name} is set here")


def _reference(question: Question) -> Place | None:
    """Where a reference or target model is the trained one under another name."""
    found = parts.second_name(question.project)
    return _at(found, "one model under a second name")


def _clip(question: Question) -> Place | None:
    """Where gradients are clipped before they are stepped."""
    where = question.item.where
    found = statements.clipped(question.project, where.path, where.line)
    return _at(found, "gradients are clipped here")


def _state(question: Question) -> Place | None:
    """Where the state that is loaded was taken from the model."""
    where = question.item.where
    found = statements.kept(question.project, where.path, where.line)
    return _at(found, "the state is taken here")


def _schedule(question: Question) -> Place | None:
    """Where the schedule is stepped."""
    found = statements.stepped(question.project)
    return _at(found, "the schedule is stepped here")


def _growth(question: Question) -> Place | None:
    """Where a list of results with their graph grows."""
    where = question.item.where
    found = statements.gathered(question.project, where.path, where.line, where.module or "")
    return _at(found, "the list grows here")


def _temperature(question: Question) -> Place | None:
    """Where scores are scaled by a temperature."""
    found = statements.tempered(question.project)
    return _at(found, "scores are scaled here")


def _zeros(question: Question) -> Place | None:
    """Where a parameter is made zero."""
    found = statements.zeroed(question.project, question.item.where.module or "")
    return _at(found, "it is made zero here")


def _at(found: tuple[str, int] | None, what: str) -> Place | None:
    return Place(*found, what) if found is not None else None


Way = Callable[[Question], Place | None]
WAYS: Mapping[str, Sequence[Way]] = {
    "live-loss-term-weight-zero": (_number,),
    "live-term-dominates": (_number,),
    "live-kl-weight-large": (_number,),
    "live-decay-shrinks-weights": (_number,),
    "live-gradient-clipped-always": (_number,),
    "live-result-cut-off": (_cut,),
    "live-no-gradient-through-other-model": (_cut,),
    "live-dead-units": (_start, _module),
    "live-units-saturated": (_start, _module),
    "live-adapter-scale-large": (_attribute, _module),
    "live-loss-is-log-two": (_reference,),
    "live-zero-factors": (_zeros, _start, _module),
    "live-clipped-while-scaled": (_clip,),
    "live-state-is-the-model-itself": (_state,),
    "live-graph-kept": (_growth,),
    "live-pairs-confined": (_temperature,),
    "live-running-statistics-off": (_module,),
    "lr-decays-too-fast": (_schedule,),
    "live-rate-stays-in-warm-up": (_schedule,),
    "live-targets-large": (_target,),
    "live-adapter-never-called": (_adapter,),
    "live-module-never-called": (_module,),
    "origin-data": (_sample,),
}
