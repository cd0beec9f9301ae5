"""Names that are matched with patterns: ``re`` and ``fnmatch`` on texts that are written out."""

from __future__ import annotations

import re
from contextlib import suppress
from fnmatch import fnmatchcase

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import Obj, Value
from trainwreck.code.rehearsal.library import NOTHING, function, method
from trainwreck.code.rehearsal.rehearsing import Rehearsing

LONGEST = 100
REPEATED_GROUP = re.compile(r"\)[*+{]")
"""A group that is repeated may take exponential time: such patterns are left alone."""


@function("re.match", "re.fullmatch", "re.search")
def _matched(run: Rehearsing, asked: Asked) -> Value:
    """Something that is true where the pattern fits, else None."""
    if len(asked.args) != 2 or asked.options:
        return NOTHING
    first = asked.args[0]
    given = first.get("pattern", 0) if isinstance(first, Obj) and first.kind == "re.Pattern" else first
    return _found(run, asked, given, asked.args[1])


@function("re.compile")
def _compiled(run: Rehearsing, asked: Asked) -> Value:
    return run.thing("re.Pattern", asked.args, asked.options, asked.place)


@method("re.Pattern", "match", "fullmatch", "search")
def _fits(run: Rehearsing, asked: Asked) -> Value:
    flagged = len(asked.receiver.args) > 1 or asked.receiver.options
    if len(asked.args) != 1 or asked.options or flagged:
        return run.node(asked.name, asked.given, asked.place)
    return _found(run, asked, asked.receiver.get("pattern", 0), asked.args[0])


def _found(run: Rehearsing, asked: Asked, pattern: Value, text: Value) -> Value:
    if not isinstance(pattern, str) or not isinstance(text, str) or max(len(pattern), len(text)) > LONGEST:
        return run.node(asked.name, asked.given, asked.place)
    if not REPEATED_GROUP.search(pattern):
        with suppress(re.error, RecursionError):
            found = getattr(re, asked.name)(pattern, text)
            return run.thing("re.Match", (text,), {}, asked.place) if found else None
    return run.node(asked.name, asked.given, asked.place)


@function("fnmatch.fnmatch", "fnmatch.fnmatchcase")
def _like(run: Rehearsing, asked: Asked) -> Value:
    text, pattern = (*asked.args, None, None)[:2]
    if not isinstance(text, str) or not isinstance(pattern, str) or max(len(text), len(pattern)) > LONGEST:
        return NOTHING
    return fnmatchcase(text, pattern) if pattern.count("*") <= 3 else NOTHING
