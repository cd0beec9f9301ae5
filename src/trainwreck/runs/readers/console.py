"""Plain console text: whatever a training prints, with its launcher, scheduler and progress bars."""

from __future__ import annotations

import re

from trainwreck.core.run import Run
from trainwreck.core.source import Source

FORMAT = "console"
ORDER = 1000
STRUCTURED = False

_NOT_CONSOLE = re.compile(
    r"\.(?:pyi?|pyx|ipynb|md|rst|jsonl?|ndjson|ya?ml|toml|cfg|ini|conf|properties|gin|env|lock|csv|tsv|(?:ba|z)?sh|slurm"
    r"|sbatch|ps1|bat|cc?|cpp|h|hpp|cuh?|m|js|ts|html?|css|xml|svg|tex|bib|java|go|rs|r|jl|lua|pl|rb|sql|mlx|proto|diff"
    r"|patch|gitignore|dockerfile|j2|jinja)$"
    r"|^(?:dockerfile|makefile|licen[sc]e(?:\.txt)?|copying|notice|authors|requirements[\w-]*\.txt|changelog"
    r"|readme(?:\.txt)?|merges\.txt|vocab\.txt|codeowners|citation\.cff)$"
)
"""Names of structured data, sources and documentation: read by others, or not of interest here."""
_JSON = re.compile(rb'^\s*[\[{]\s*(?:\n\s*)?["\[{\]}]')


def sniff(source: Source) -> bool:
    """True for any text that is neither structured data, source code nor documentation by name."""
    name = source.basename
    if source.is_binary or not source.head or _NOT_CONSOLE.search(name):
        return False
    return not _whole_json(source.head)


def read(source: Source) -> list[Run]:
    """One run an attempt; none if no metric, setting-up failure or scheduler message is in it."""
    from trainwreck.runs.console.read import read as read_text  # its many expressions cost 0.2 CPU seconds to compile

    return read_text(source)


def _whole_json(head: bytes) -> bool:
    """True if the text is one JSON document over several lines, as configurations are."""
    return (
        _JSON.match(head) is not None
        and head.lstrip()[:1] == b"{"
        and b"\n" in head[:200]
        and b"}" not in head[: head.find(b"\n") + 1]
    )
