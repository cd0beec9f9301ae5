"""Take what launchers, loggers and people put before a line off it, and remember whose line it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_PREFIXES = 5
"""Layers of prefix taken off one line: docker, then mpirun, then a rank, then a logger, is the most met in practice."""

_STAMP = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SEVERE|E|W|I)"
_PREFIXES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("rank", re.compile(r"\[rank:? ?(\d{1,6})\](?::|(?= )) ?")),
    ("rank", re.compile(r"\[?(?:default|trainer|worker|local_rank|RANK|Rank|GPU|rank)[ _=]?(\d{1,6})\]?: ?")),
    ("actor", re.compile(r"(\([\w.:<>]{1,80}(?: rank=\d+)? pid=\d+(?:, ip=[\d.]+)?\)) ")),
    ("rank", re.compile(r"\[\d+,(\d+)\]<std(?:err|out)>: ?")),
    ("stamp", re.compile(_STAMP + r"(?: std(?:err|out) [FP])?(?: \|)?(?: |$)")),
    ("stamp", re.compile(r"\[" + _STAMP + r"\](?: |$)")),
    ("stamp", re.compile(r"\[\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}\] ")),
    ("stamp", re.compile(r"\w{3} +\d{1,2} \d\d:\d\d:\d\d [\w.-]{1,60} (?:[\w./-]{1,40}(?:\[\d+\])?: )?")),
    ("actor", re.compile(r"([\w.-]{1,60}) {1,20}\| ")),
    ("stamp", re.compile(r"[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ {1,8}\d+ [\w./-]{1,200}:\d+\] ?")),
    ("stamp", re.compile(r"\[?" + _LEVEL + r"\]?(?::[\w.]{0,60}:(?=\s*\S)|(?: {0,4}[|:-] | +)(?=\S))")),
    ("stamp", re.compile(r"- ?" + _LEVEL + r" ?- ")),
    ("rank", re.compile(r"(\d{1,4}): (?=Traceback|  File \"|    \S|[A-Z]\w+(?:Error|Exception)\b)")),
    ("none", re.compile(r"(?:wandb: (?:ERROR|WARNING)? ?|srun: |slurmstepd: |stderr: ?|stdout: ?|>{1,3} )(?=.)")),
    ("none", re.compile(r">(?=\s*(?:Traceback|File \"|\w+(?:Error|Exception)\b)) ?")),
)


@dataclass(frozen=True, slots=True)
class Body:
    """A line without its prefixes. ``stream`` names the writer (a rank, an actor), "" where the line does not say;
    ``stamped`` is True where a time or a level was taken off,
    ``cut`` the number of characters taken off."""

    text: str
    stream: str
    rank: int | None
    stamped: bool = False
    cut: int = 0


def strip(text: str) -> Body:
    """``text`` without leading prefixes. The indentation of what remains is kept: it carries the structure."""
    stream, rank, stamped, whole = "", None, False, len(text)
    if not text or (text[0] in " \t" and not text.lstrip().startswith(("|", "[rank"))):
        return Body(text, "", None)
    for _ in range(MAX_PREFIXES):
        for kind, pattern in _PREFIXES:
            found = pattern.match(text)
            if found is None or found.end() == 0:
                continue
            if kind == "rank":
                rank = int(found[1])
                stream = f"rank {rank}"
            elif kind == "actor":
                stream = found[1]
                said = re.search(r"rank=(\d+)", stream)
                rank = int(said[1]) if said else rank
            stamped = stamped or kind == "stamp"
            text = text[found.end() :]
            break
        else:
            break
    return Body(text, stream, rank, stamped, whole - len(text))
