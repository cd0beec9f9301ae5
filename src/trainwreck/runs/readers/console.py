"""Plain console text: whatever a training prints, with its launcher, scheduler and progress bars."""

from __future__ import annotations

import re

from trainwreck.core.run import Run
from trainwreck.core.source import Source

FORMAT = "console"
ORDER = 1000
STRUCTURED = False

_NOT_CONSOLE = (
    ".py", ".pyi", ".ipynb", ".md", ".rst", ".json", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".c",
    ".cc", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".js", ".ts", ".html", ".htm", ".css", ".xml", ".svg", ".tex", ".bib", ".java", ".go", ".rs", ".r",
    ".jl", ".lua", ".pl", ".rb", ".csv", ".tsv", ".jsonl", ".ndjson", ".lock", ".env", ".gitignore", ".dockerfile", ".j2", ".jinja", ".sql",
    ".m", ".mlx", ".pyx", ".proto", ".diff", ".patch", ".properties", ".conf", ".gin", ".ps1", ".bat",
)  # fmt: skip
_NAMES = ("dockerfile", "makefile", "license", "licence", "copying", "notice", "authors", "requirements.txt", "changelog", "readme", "readme.txt",
          "license.txt", "merges.txt", "vocab.txt", "requirements-dev.txt", "codeowners", "citation.cff")  # fmt: skip
_JSON = re.compile(rb'^\s*[\[{]\s*(?:\n\s*)?["\[{\]}]')
_SOURCE = re.compile(rb"^(?:#!/|import |from \S+ import |<\?xml|<!DOCTYPE|<html|---\n\w+:)", re.IGNORECASE)


def sniff(source: Source) -> bool:
    """True for any text that is neither structured data, source code nor documentation by name."""
    name = source.basename
    if source.is_binary or not source.head or name in _NAMES or name.endswith(_NOT_CONSOLE):
        return False
    return not _whole_json(source.head)


def read(source: Source) -> list[Run]:
    """One run an attempt; none if no metric, setting-up failure or scheduler message is in it."""
    from trainwreck.runs.console.read import read as read_text  # its many expressions cost 0.2 CPU seconds to compile

    return read_text(source)


def _whole_json(head: bytes) -> bool:
    """True if the text is one JSON document over several lines, as configurations are."""
    return _JSON.match(head) is not None and head.lstrip()[:1] == b"{" and b"\n" in head[:200] and b"}" not in head[: head.find(b"\n") + 1]
