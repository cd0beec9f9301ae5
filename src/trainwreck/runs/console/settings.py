"""Settings that a log prints: argument dumps, configuration blocks, counts of parameters and classes."""

from __future__ import annotations

import re
from typing import Any

from trainwreck.core.evidence import Where
from trainwreck.core.run import Setting
from trainwreck.runs.console import words as w

MAX_SETTINGS = 2000
MAX_VALUE = 200

_LINE = re.compile(
    r"^\s*(?:[-*|•>]\s+)?[\"']?(?P<key>[A-Za-z][\w .\-/]{0,60}?)[\"']?\s*(?:\s\.{3,}|\.{4,}|[:=](?!=))\s*(?P<val"
    r"ue>\S.{0,120}?)\s*,?\s*\|?\s*$"
)
_DUMP = re.compile(
    r"(?:Namespace|Arguments|Config|Args|Params|config|args|hparams|parameters|options|settings)\w*\s*[:=]?\s*[("
    r"{]|^\s*[{(]"
)
_PAIR = re.compile(
    r"[\"']?(?P<key>[A-Za-z_][\w.\-/]*)[\"']?\s*[=:]\s*(?P<value>\"[^\"]{0,200}\"|'[^']{0,200}'|\[[^\[\]]{0,200}"
    r"\]|\([^()]{0,200}\)|[^,(){}\[\]=:]{1,120})"
)
_COUNT_AFTER = re.compile(
    rf"(?<![\w.])(?P<value>\d[\d,]*(?:(?:\.\d+)?\s?[kKMB])?)\s+(?P<key>{w.COUNTED})\b", re.IGNORECASE
)
_COUNT_BEFORE = re.compile(
    rf"\b(?P<key>(?:number of |num[_ ]|total |trainable |all )*(?:{w.COUNTED}))\b\s?[:=]?\s{{0,4}}(?P<value>\d["
    rf"\d,]*(?:(?:\.\d+)?\s?[kKMB])?)(?![\w.])",
    re.IGNORECASE,
)
_AMP = re.compile(
    r"Using (?P<value>(?:16|32|64|bf16|fp16)\w*[ -]?\w*(?: Automatic)? Mixed Precision(?: \(AMP\))?|native Apex|"
    r"bfloat16 \w+)",
    re.IGNORECASE,
)
_SIMPLE = re.compile(r"[-+\w./\\@'\"\[\](), :<>]+$")
_MAGNITUDE = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}


class Settings:
    """What was configured, the first mention first. ``feed`` is given lines that may tell settings."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: dict[str, Setting] = {}
        self._before: tuple[int, str, Any] | None = None
        self._block = 0

    def put(self, key: str, value: Any, line: int) -> None:
        """One setting. A value told before is kept."""
        if key and key not in self.found and len(self.found) < MAX_SETTINGS:
            self.found[key] = Setting(key, value, Where("log", path=self.path, line=line, key=key))

    def feed(self, text: str, line: int) -> bool:
        """Take the settings of a line; True if it held some."""
        amp = _AMP.search(text)
        if amp is not None:
            self.put("precision", amp.group("value"), line)
            return True
        if _DUMP.search(text):
            pairs = [(m.group("key"), m.group("value")) for m in _PAIR.finditer(text[:20_000])]
            if len(pairs) >= 3:
                for key, value in pairs:
                    self.put(key, plain(value), line)
                return True
        counted = False
        for match in (*_COUNT_AFTER.finditer(text[:300]), *_COUNT_BEFORE.finditer(text[:300])):
            self.put(match.group("key").lower().strip(), plain(match.group("value")), line)
            counted = True
        single = _LINE.match(text) if len(text) < 240 else None
        if single is None or not _SIMPLE.match(single.group("value")):
            self._before, self._block = None, 0
            return counted
        key, value = single.group("key").strip(), plain(single.group("value"))
        if len(key.split()) > 5 or (
            isinstance(value, str)
            and (len(value.split()) > 6 or value.endswith(".") or ": " in value or "://" in value)
        ):
            self._before, self._block = None, 0
            return counted
        self._block += 1
        if self._block >= 3:
            if self._before is not None:
                self.put(self._before[1], self._before[2], self._before[0])
            self.put(key, value, line)
            return True
        known = w.SETTING_KEYS.search(key) is not None
        if known:
            self.put(key, value, line)
        self._before = (line, key, value)
        return counted or known


def plain(text: str) -> Any:
    """``text`` as a number, a truth value, None, or itself without quotes."""
    bare = text.strip().strip("\"'").strip()
    known: dict[str, Any] = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
    if bare in known:
        return known[bare]
    factor = 1.0
    digits = bare.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?\s?[kKMB]?", bare) else bare
    if digits[-1:] in _MAGNITUDE and digits[:1].isdigit():
        factor, digits = _MAGNITUDE[digits[-1]], digits[:-1].strip()
    try:
        value = float(digits) * factor
    except ValueError:
        return bare[:MAX_VALUE]
    return int(value) if value == value and abs(value) < 2**53 and value == int(value) and "." not in digits else value
