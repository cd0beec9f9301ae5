"""YAML beside a run: hparams.yaml, args.yaml, config.yaml of any program. Settings with their lines.

Nothing is constructed from tags (Lightning writes ``!!python/object``), and the number of nodes is bounded, so that
nested aliases can't blow up.
"""

from __future__ import annotations

import re
from typing import Any

from trainwreck.core.run import Run
from trainwreck.core.source import Source
from trainwreck.runs.build import number
from trainwreck.runs.readers._settings import is_settings, settings_of

FORMAT = "settings"
ORDER = 60
STRUCTURED = True

MAX_BYTES = 512 << 10
MAX_NODES = 20_000
MAX_DEPTH = 12

_KEY_LINE = re.compile(rb"^(---|#.*|%.*|-? ?[\w.\"'/ -]{1,80}:( .*)?|!!?\S+.*)\r?$")
_WORDS: dict[str, bool | None] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WORDS |= {"null": None, "~": None, "": None}
_BRACKET = re.compile(r"[\[\]{}]")
_NESTED_DASHES = re.compile(r"(?:[-?] ){40}")


def sniff(source: Source) -> bool:
    if not source.basename.endswith((".yaml", ".yml")) or source.is_binary:
        return False
    first = [line for line in source.head.splitlines()[:20] if line.strip()]
    return bool(first) and (source.size or 0) <= MAX_BYTES and any(_KEY_LINE.match(line) for line in first)


def silent(source: Source) -> bool:
    return source.basename.endswith((".yaml", ".yml")) and not source.is_binary


def read(source: Source) -> list[Run]:
    """One run without series, or none if the document configures no training. Raises ValueError if it is no YAML."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = source.text(MAX_BYTES)
    if _too_deep(text):
        raise ValueError("the YAML is nested too deeply")
    try:
        node = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        mark = getattr(problem, "problem_mark", None)
        at = f" at line {mark.line + 1}" if mark is not None else ""
        raise ValueError(f"no valid YAML{at}") from None
    lines: dict[tuple[str, ...], int] = {}
    document = _value(node, (), lines, [MAX_NODES]) if node is not None else None
    if not isinstance(document, dict) or not is_settings(document, source.basename):
        return []
    settings = settings_of(document, source.name, lines)
    return [Run(path=source.name, format=FORMAT, series={}, settings=settings, files=(source.name,))]


def _value(node: Any, above: tuple[str, ...], lines: dict[tuple[str, ...], int], budget: list[int]) -> Any:
    """The plain value of a node; tags are ignored, what exceeds the budget of nodes is left out."""
    budget[0] -= 1
    if budget[0] < 0 or len(above) > MAX_DEPTH:
        return None
    if node.id == "mapping":
        found: dict[str, Any] = {}
        for key, value in node.value:
            if key.id == "scalar":
                path = (*above, str(key.value)[:100])
                lines.setdefault(path, key.start_mark.line + 1)
                found[path[-1]] = _value(value, path, lines, budget)
        return found
    if node.id == "sequence":
        return [_value(item, (*above, "-"), lines, budget) for item in node.value[:64]]
    if not node.style:  # neither quoted nor a block
        text = node.value
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if re.fullmatch(r"[-+]?\d{1,18}", text):
            return int(text)
        if text in (".nan", ".inf", "-.inf"):
            return float(text.replace(".", ""))
        parsed = number(text) if not text.endswith(("%", "k", "K", "M", "B")) and "," not in text else None
        return text if parsed is None else parsed
    return node.value


def _too_deep(text: str) -> bool:
    """The parser recurses in C: nesting has to be bounded before it sees the text."""
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += 1 if match.group() in "[{" else -1
        if depth > 100:
            return True
    indents = {len(line) - len(line.lstrip(" ")) for line in text.splitlines()}
    return len(indents) > 100 or _NESTED_DASHES.search(text) is not None
