"""Line grammars as data: where the structure of a line tells a counter, and which numbers are times."""

from __future__ import annotations

import re

from trainwreck.runs.console.words import N


def _anchor(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(pattern.replace("N", N).replace(" ", r"\s*"), flags)


ANCHORS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "bracket",
        _anchor(
            r"^\W{0,4}\[ (?P<epoch>N) /(?P<epoch_total>N) [,;|:]? (?:iter|step|batch)?:? (?P<step>N) (?:/(?P<ste"
            r"p_total>N) )?\]"
        ),
    ),
    ("bracket", _anchor(r"^\W{0,4}\[ (?P<epoch>N) /(?P<epoch_total>N) \] \[ (?P<step>N) /(?P<step_total>N) \]")),
    ("bracket", _anchor(r"^\W{0,4}\[ (?P<epoch>N) [,:|] (?P<step>N) (?:/(?P<step_total>N) )?\]")),
    ("tune", _anchor(r"^ (?P<epoch>N)\|(?P<step>N)\|(?=[a-z])")),
    (
        "bar",
        _anchor(
            r"(?:epoch|ep)[\s:=\[]*(?P<epoch>N) (?:/(?P<epoch_total>N))?[\s\]:]*N%\|\| (?P<step>N)[kKM]?/(?P<ste"
            r"p_total>N)"
        ),
    ),
    ("bar", _anchor(r"N%\|\| (?P<step>N)[kKM]?/(?P<step_total>N)")),
    ("bar", _anchor(r"(?<![\w.])(?P<step>N)it \[N:")),
    (
        "keras",
        _anchor(r"^[\s\b]*(?P<step>N) /(?:(?P<step_total>N)|unknown) (?:\[[=>.\-]*\]|[━╸╺\-]+|(?= -? N(?:ms|s|us)))"),
    ),
    ("espnet", _anchor(r"(?P<epoch>N)epoch:\w+:N - (?P<step>N) batch:")),
    ("espnet", _anchor(r"(?P<epoch>N)epoch(?: results)?:")),
    ("mmcv", _anchor(r"\bepoch (?:\((?:train|val|test)\))? \[ (?P<epoch>N) \] \[ (?P<step>N) /(?P<step_total>N) ")),
    ("mmcv", _anchor(r"\biter (?:\((?:train|val|test)\))? \[ (?P<step>N) /(?P<step_total>N) \]")),
    (
        "eval-progress",
        _anchor(r"^\W{0,4}(?:test|val|valid|validation|eval|evaluation) ?[:\s] [\[(] (?P<step>N) /(?P<step_total>N)"),
    ),
    ("boosting", _anchor(r"^\[(?P<step>N)\]\s+(?=[\w\-']+)")),
    (
        "imagenet",
        _anchor(
            r"\b(?:epoch|train|test|val|valid)\w* ?: \[? (?P<epoch>N) \]? (?:/(?P<epoch_total>N) \]?)? [\[(] (?P"
            r"<step>N) /(?P<step_total>N) "
        ),
    ),
    ("composer", _anchor(r"\[(?P<key>batch|ba|step|iter|epoch|ep|sample)=(?P<step>N)/(?P<step_total>N)\]")),
)
"""Counters that a structure tells. ``N`` is a number, a blank any white space. Asked in order, before the named
counters."""

TOTAL = re.compile(r"^\s*\]?\s*(?:/|of\b|out of\b)\s*$")
TIMES = tuple(
    re.compile(p.replace("N", N))
    for p in (
        r"N:N:N(?:[.,]N)?",
        r"N:N<N:N(?::N)?",
        r"N:N<\?",
        r"\[N:N(?::N)?",
        r"<N:N(?::N)?",
        r"(?<![\w:\[])N:N(?![\w:.\]])",
        r"N\s?(?:it/s|s/it|ms/step|s/step|us/step|s/epoch|ms/batch)",
        r"(?:eta|elapsed|remaining)\W*N(?:\W?N){0,3}",
        r"N days?,?",
        r"N%\|\|",
        r"\(\s*N\s*%\s*\)",
        r"\(N/N\)(?=\s*$)",
        r"\bN-N-N\b",
        r"-\s+N(?:ms|s|us)(?=\s)",
        r"\(N s\)",
        r"\d\d?-\d\d[ T]N",
    )
)
"""Times, rates and percentages of progress: numbers that are no metric of the model."""
