"""The shapes of lines in error reports, and the exception that is being put together from them."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from trainwreck.core.failure import Failure, Frame

CONTEXT_LINES = 12
"""Lines before a report that are kept with it: enough for the warning that announces it."""
HEADER = re.compile(
    r"^(?P<indent>[\s|+>│-]*)(?P<kind>Exception Group |Original )?Traceback \(most recent call (?:last|first)\):?"
)
NOTEBOOK_HEADER = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)\s{2,}Traceback \(most recent call last\)")
EXCEPTION = re.compile(r"^(?:[\s|>│]*)(?P<type>[A-Za-z_][\w.]*(?:\([\w., ]{1,80}\))?)(?:: ?(?P<message>.*))?$", re.S)
BARE = re.compile(
    r"(?<![\w.\"'`])(?P<type>(?:[A-Za-z_]\w*\.){0,8}_?[A-Z]\w*(?:Error|Exception|Interrupt|Warning|OutOfMemory|Timeout)"
    r"(?:\([\w., ]{1,80}\))?)(?:: |:?$| `)(?P<message>.*)$"
)
WARNING = re.compile(
    r"^(?P<path>(?:[A-Za-z]:)?[^\s:\"'][^:\"']{0,400}|<[\w -]+>):(?P<line>\d{1,8}): "
    r"(?P<type>\w*Warning): (?P<message>.*)$"
)
CARETS = re.compile(r"^[\s|]*[\^~]+[\s\^~]*$")
CAUSE = re.compile(r"The above exception was the direct cause of the following exception")
DURING = re.compile(r"During handling of the above exception, another exception occurred")
LOG = re.compile(
    r"^(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\[?(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b|[EWIF]\d{4} \d\d:|wandb:|srun:|"
    r"slurmstepd|"
    r"(?:Epoch|epoch|step|iter|Step|Iter)\b[ :=\[]*\d|\s*\d{1,3}%\||\s*(?:```|~~~)|[\w.-]+@[\w.-]+[:~]|\$ )"
)
CONTINUES = re.compile(
    r"^(?:\t|    |CUDA kernel errors|For debugging|Compile with|Device-side assert|Exception raised from|frame #|"
    r"Search for|The stack trace below|The preceding|-{4,}|={4,}|Failures:|Root Cause|\[\d+\]:|See |To |Please |You )"
)
NB_FRAMES = (
    re.compile(r"^File (?P<path>\S.{0,400}?):(?P<line>\d+), in (?P<function>.+)$"),
    re.compile(r"^(?P<path>(?:Cell|Input) In ?\[\d+\])(?:, line (?P<line>\d+)|, in .*)"),
    re.compile(
        r"^(?P<path><ipython-input-[^>]{1,80}>|[~/\w][^\s:]{0,400}\.py|[A-Za-z]:\\[^:]{1,400}\.py) in "
        r"(?P<function>[^\s:]+.*)$"
    ),
)
NB_ARROW = re.compile(r"^-{2,}> ?(?P<line>\d+) ?(?P<text>.*)$")
PYTEST = re.compile(r"^(?P<path>[^\s:]{1,300}\.py):(?P<line>\d+): (?P<type>[\w.]*(?:Error|Exception|Failed))$")
WORKER = re.compile(r"in (?:DataLoader worker process|pin memory thread for device|replica) (\d+)")


@dataclass
class Open:
    """An exception that is being printed."""

    indent: int
    line: int
    rank: int | None
    notebook: str = ""
    dump: bool = False
    frames: list[Frame] = field(default_factory=list)
    raw: str = ""
    type: str = ""
    message: list[str] = field(default_factory=list)
    size: int = 0
    blank: bool = False
    noise: int = 0
    inner: Failure | None = None
    chained: Failure | None = None
    ignored: bool = False
    stamped: bool = False
    cut: int = 0
    short: bool = False
    end: int = 0
    context: tuple[str, ...] = ()


@dataclass
class Writer:
    stack: list[Open] = field(default_factory=list)
    last: Failure | None = None
    last_line: int = -1000
    chain_to: Failure | None = None
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=CONTEXT_LINES))
    ignored: bool = False


def depth(failure: Failure) -> int:
    """How many exceptions the chain of ``failure`` holds."""
    count, current = 1, failure.cause
    while current is not None:
        count, current = count + 1, current.cause
    return count
