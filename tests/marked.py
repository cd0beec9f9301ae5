"""Scripts whose lines are marked: which lines a question answers, or a rule tells, against those that it should."""

from __future__ import annotations

from trainwreck.code.project import Project
from trainwreck.code.read import parse
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.witness import witness
from trainwreck.core.program import Module, Program


def marked(text: str, word: str = "# here") -> set[int]:
    """The lines that hold ``word``."""
    return {number for number, line in enumerate(text.split("\n"), 1) if word in line}


def program(text: str) -> Program:
    module = parse("train.py", text)
    assert isinstance(module, Module), module
    return Program({"train.py": module})


def answered(question: Question, text: str) -> set[int]:
    """The lines of the answers to ``question``."""
    runs = rehearsals(Project(program(text)))
    return {int(getattr(answer.place[0], "lineno", 0)) for run in runs for answer in question(run)}


def told(sign: str, text: str) -> set[int | None]:
    """The lines at which the rules see ``sign``."""
    return {e.where.line for e in witness(program(text)).evidence if e.sign == sign}
