"""Names of numbers: what stands before a number as its key, and which keys are counters."""

from __future__ import annotations

import re

from trainwreck.runs.console import words as w

_STEP_RANK = {key: place for place, key in enumerate(w.STEP_KEYS)}
_EPOCH_RANK = {key: place for place, key in enumerate(w.EPOCH_KEYS)}


def key_of(before: str) -> tuple[str, bool] | None:
    """The name that ends ``before`` and whether a separator says that it is one; None if there is none."""
    text = w.WRAP.sub("", before[-240:])
    norm = _NORM.search(text)
    if norm is not None:
        return norm.group(1), False
    separator = w.SEPARATOR.search(text)
    if separator is None:
        return None
    explicit = separator.group("explicit") is not None
    text = text[: separator.start()]
    if explicit and text.endswith(("'", '"')):
        quote = text[-1]
        start = text.rfind(quote, 0, -1)
        key = text[start + 1 : -1].strip()
        return (key, True) if start >= 0 and key and key[0].isalpha() and len(key) <= 100 else None
    key = w.SEGMENT.split(text)[-1].strip(" -*>#=~.<…!?·")
    if key[:1] == "(" and key[1:].lower() in _ASIDES:
        return None
    key = key.lstrip("([{<") if key.count("(") + key.count("[") > key.count(")") + key.count("]") else key
    key = _FRONT.sub("", key).strip()
    if len(key.split()) > 3 and not explicit and counter_rank(key.split()[-1]):
        key = key.split()[-1]
    if not key or len(key) > 60 or not w.KEY.match(key):
        return None
    if len(key.split()) > (6 if explicit else 3):
        return None
    if key.count("(") != key.count(")") or key.count("[") != key.count("]"):
        return None
    if bare_name(key.split()[-1]) in _STOP:
        return None
    return key, explicit


_NORM = re.compile(r"(?<![\w|])(\|\w+\|)\s*$")
_ASIDES = frozenset(
    {
        "avg",
        "mean",
        "smoothed",
        "best",
        "ema",
        "running",
        "max",
        "min",
        "std",
        "was",
        "smooth",
        "average",
        "median",
        "±",
    }
)
_FRONT = re.compile(r"^(?:[^\w|%(λ]+|(?:rank|epoch|step|iter|ep)[_\-#]?\d+[\s:,|\-]*)+", re.IGNORECASE)
_STOP = frozenset(
    {
        "from",
        "to",
        "than",
        "in",
        "at",
        "for",
        "and",
        "or",
        "by",
        "of",
        "with",
        "after",
        "the",
        "a",
        "is",
        "was",
        "on",
        "using",
    }
)


def bare_name(key: str) -> str:
    """``key`` as the tables of counters write it."""
    return re.sub(r"[_ ]+", " ", key.strip().lower().removeprefix("train/").removeprefix("trainer/")).strip()


_STEPS = {bare_name(k): place for k, place in _STEP_RANK.items()}
_EPOCHS = {bare_name(k): place for k, place in _EPOCH_RANK.items()}


def counter_rank(key: str) -> tuple[str, int] | None:
    """("step" or "epoch", rank) if ``key`` names a counter. Of several words the last counts ("saved at step")."""
    bare = bare_name(key)
    last = bare.rsplit(" ", 1)[-1].rsplit("/", 1)[-1].rsplit("[", 1)[-1].rsplit("(", 1)[-1]
    for kind, table in (("step", _STEPS), ("epoch", _EPOCHS)):
        if bare in table:
            return kind, table[bare]
        if (
            last in table
            and len(last) > 2
            and not re.search(r"\b(?:per|of|number|num|max|total|warmup|best|every|log|fps)\b", bare)
        ):
            return kind, table[last]
    return None


def canonical(key: str) -> str:
    """The counter that ``key`` names, so that "saved at step" and "step" are one."""
    bare = bare_name(key)
    return bare if bare in _STEPS or bare in _EPOCHS else bare.rsplit(" ", 1)[-1]


def phase_of(text: str) -> str:
    """ "val", "test" or "train" if ``text`` ends in such words, the last of them; else ""."""
    last = None
    for match in w.PHASE.finditer(text):
        last = match
    if last is None:
        return ""
    return str(last.lastgroup)
