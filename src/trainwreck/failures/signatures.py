"""The signature engine: fragments first, then regular expressions; named groups become the value of the evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from trainwreck.core.evidence import EvidenceClass
from trainwreck.core.failure import Failure, Frame

MAX_TEXT = 6000
"""Characters of one message that patterns see: a list of a thousand missing keys says no more than its first fifty."""
_LONG_WORD = re.compile(r"\S{400,}")


def clip(text: str) -> str:
    """``text`` cut to what patterns may see, words beyond 400 characters shortened: bounds the time of any pattern."""
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT - 1000] + "\n" + text[-1000:]
    return _LONG_WORD.sub(lambda found: found[0][:200], text)


@dataclass(frozen=True)
class Signature:
    """One entry of ``catalogue/signatures``; docs/catalogue.md explains its fields."""

    sign: str
    contains: Sequence[str]
    pattern: str
    type: Sequence[str]
    frame: str
    code: str
    context: str
    without: Sequence[str]
    scopes: frozenset[str]
    cls: EvidenceClass
    text: str
    echo: bool
    all: Sequence[str] = ()
    holds: Sequence[str] = ()

    @cached_property
    def regex(self) -> re.Pattern[str] | None:
        return re.compile(self.pattern) if self.pattern else None

    @cached_property
    def loose(self) -> re.Pattern[str] | None:
        return re.compile(self.pattern, re.IGNORECASE) if self.pattern else None

    @cached_property
    def low(self) -> Sequence[str]:
        return tuple(fragment.lower() for fragment in self.contains)


@dataclass(frozen=True)
class Match:
    """A signature that fits, with the named parts of the text."""

    signature: Signature
    value: Mapping[str, Any]

    def sentence(self, fallback: str) -> str:
        """The sentence of the signature with its parts filled in; ``fallback`` where it has none."""
        text = self.signature.text or fallback
        return re.sub(r"\{(\w+)\}", lambda m: str(self.value.get(m[1], "?")), text)


def compile_signatures(entries: Iterable[Mapping[str, Any]]) -> list[Signature]:
    """Signatures from catalogue entries. Expressions are compiled when first needed."""
    return [signature_from(entry) for entry in entries]


def signature_from(entry: Mapping[str, Any]) -> Signature:
    scope = entry.get("scope", "message")
    return Signature(
        sign=entry["sign"],
        contains=tuple(entry.get("contains", ())),
        pattern=entry.get("pattern", ""),
        type=tuple(entry.get("type", ())),
        frame=entry.get("frame", ""),
        code=entry.get("code", ""),
        context=entry.get("context", ""),
        without=tuple(entry.get("without", ())),
        scopes=frozenset([scope] if isinstance(scope, str) else scope),
        cls=cast(EvidenceClass, entry.get("class", "direct")),
        text=entry.get("text", ""),
        echo=bool(entry.get("echo", False)),
        all=tuple(entry.get("all", ())),
        holds=tuple(entry.get("holds", ())),
    )


def in_failure(failure: Failure, signatures: Sequence[Signature]) -> Iterator[Match]:
    """Signatures of scope ``message`` that fit one failure of a chain (its own message, not that of its cause)."""
    text = clip(f"{failure.type}: {failure.message}")
    name = failure.type.split("(")[0].rsplit(".", 1)[-1]
    inner = re.search(r"\(([\w.]+)", failure.type)
    names = {name, failure.type, *([inner[1]] if inner else [])}
    frames: list[str] | None = None
    for signature in signatures:
        if "message" not in signature.scopes or not _fragments(signature, text):
            continue
        if signature.type and names.isdisjoint(signature.type):
            continue
        if signature.frame or signature.code:
            if frames is None:
                frames = [f"{f.path}:{f.line} in {f.function}" for f in failure.frames]
            if signature.frame and not any(re.search(signature.frame, f) for f in frames):
                continue
            if signature.code and not _code_fits(signature.code, failure):
                continue
        if signature.context and not re.search(signature.context, "\n".join(failure.context)):
            continue
        value = _value(signature, text)
        if value is not None:
            yield Match(signature, value)


def _code_fits(pattern: str, failure: Failure) -> bool:
    """``code`` looks at the quoted source line (and marked part) of the innermost user frame."""
    user: Frame | None = next((f for f in reversed(failure.frames) if f.user), None)
    frame = user or (failure.frames[-1] if failure.frames else None)
    return frame is not None and re.search(pattern, frame.marked or frame.text) is not None


def in_line(text: str, signatures: Sequence[Signature]) -> Iterator[Match]:
    """Signatures that fit one line of a log; ``signatures`` are those of scope ``line``."""
    text = clip(text)
    for signature in signatures:
        if _fragments(signature, text):
            value = _value(signature, text)
            if value is not None:
                yield Match(signature, value)


def in_report(text: str, signatures: Sequence[Signature]) -> Iterator[Match]:
    """Signatures of any scope that fit somebody's words: case does not count, types only where one is named."""
    text = clip(text)
    low = text.lower()
    types = set(re.findall(r"\b[A-Z]\w*(?:Error|Exception|Interrupt|Warning)\b", text))
    for signature in signatures:
        if signature.frame or signature.code or signature.context:
            continue
        if signature.contains and not any(fragment in low for fragment in signature.low):
            continue
        if any(fragment.lower() in low for fragment in signature.without):
            continue
        if signature.type and types and types.isdisjoint(signature.type):
            continue
        value = _value(signature, text, loose=True)
        if value is not None:
            yield Match(signature, value)


def _fragments(signature: Signature, text: str) -> bool:
    if signature.contains and not any(fragment in text for fragment in signature.contains):
        return False
    return not any(fragment in text for fragment in signature.without)


def _value(signature: Signature, text: str, *, loose: bool = False) -> dict[str, Any] | None:
    """Named groups as numbers where they are numbers; None where an expression or a comparison does not fit."""
    flags = re.IGNORECASE if loose else 0
    if any(re.search(pattern, text, flags) is None for pattern in signature.all):
        return None
    regex = signature.loose if loose else signature.regex
    if regex is None:
        return {}
    found = regex.search(text)
    if found is None:
        return None
    value = {name: number(part) for name, part in found.groupdict().items() if part is not None}
    return value if all(_holds(claim, value) for claim in signature.holds) else None


_CLAIM = re.compile(r"^(\w+)(?: ([-%]) (\w+))? (<=|>=|==|!=|<|>) (-?\w+)$")


def _holds(claim: str, value: Mapping[str, Any]) -> bool:
    """A comparison such as ``a < b``, ``a - b <= 32`` or ``a % 32 != 0`` between named parts and numbers.

    False where a part is absent or no number (``==`` and ``!=`` also compare words).
    """
    found = _CLAIM.match(claim)
    if found is None:
        return False
    left, right = _operand(found[1], value), _operand(found[5], value)
    if found[2]:
        other = _operand(found[3], value)
        if not isinstance(left, (int, float)) or not isinstance(other, (int, float)) or (found[2] == "%" and not other):
            return False
        left = left - other if found[2] == "-" else left % other
    if found[4] in ("==", "!="):
        return left is not None and right is not None and (left == right) == (found[4] == "==")
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return False
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[found[4]]


def _operand(text: str, value: Mapping[str, Any]) -> Any:
    return number(text) if re.fullmatch(r"-?\d+", text) else value.get(text)


def number(text: str) -> int | float | str:
    """``text`` as an int or float where it is one."""
    plain = text.strip().replace(",", "") if re.fullmatch(r"\s*-?\d{1,3}(?:,\d{3})+\s*", text) else text.strip()
    if re.fullmatch(r"[-+]?\d{1,18}", plain):
        return int(plain)
    if re.fullmatch(r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?", plain):
        return float(plain)
    return text[:300]
