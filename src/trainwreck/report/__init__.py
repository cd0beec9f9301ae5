"""One module a format: pure functions of a ``Result``. Nothing here computes or opens a file."""

from __future__ import annotations

import importlib
from typing import Any

from trainwreck.core.redact import masked
from trainwreck.core.results import Result

FORMATS = {
    "full": "terminal",
    "concise": "concise",
    "json": "json",
    "jsonl": "json",
    "markdown": "markdown",
    "html": "html",
    "package": "package",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
}
SUFFIXES = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".html": "html",
    ".htm": "html",
    ".txt": "full",
    ".sarif": "sarif",
    ".xml": "junit",
}


def render(result: Result, form: str, **options: Any) -> str:
    """``result`` as text in the format ``form`` (a key of ``FORMATS``), secrets masked.

    Options of ``full``: ``color``, ``unicode`` and ``width`` (see ``trainwreck.report.screen.options``).
    """
    module = importlib.import_module(f"{__name__}.{FORMATS[form]}")
    text: str = module.render(masked(result), form=form, **options)
    return text
