"""Masks what should not travel in a report: tokens, keys, passwords and e-mail addresses that a log happened to quote.

Reports are pasted into issues and chats, so every format masks, JSON included. A mask keeps the kind and, for keys, the
recognisable prefix: ``hf_[masked]``. Patterns are narrow, because code and hashes must stay readable: a bare
hexadecimal number is a commit as often as a key and is masked only beside a word that says key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

MASK = "[masked]"
T = TypeVar("T")

_START = r"(?<![A-Za-z0-9_-])"
_SECRET_NAME = (
    r"(?:[A-Za-z0-9]+[_-])*(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key|secret[_-]?key"
    r"|private[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|hf[_-]?token|hub[_-]?token|github[_-]?token"
    r"|use_auth_token)"
)
# Not within a name: every start inside a_a_a_… would cost a scan to its end.
_NAME_START = r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][_-])"
_TLD = r"(?:com|org|net|edu|gov|mil|info|biz|dev|app|tech|cloud|science|[a-z]{2}(?:\.[a-z]{2})?)"

_ID_WORDS = ("wandb", "key", "token", "login", "netrc")
_NAME_WORDS = ("pass", "pwd", "secret", "key", "token")

# (one of which must occur in lower case for the pattern to be tried, pattern, flags, replacement)
_RULES: tuple[tuple[tuple[str, ...], str, int, str], ...] = (
    (("-----begin",), r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", 0, MASK),
    # https://user:password@host: the whole user part goes.
    (("@",), r"(\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://)[^\s/@'\"<>]{1,200}@(?=[\w\[])", 0, rf"\1{MASK}@"),
    # Published prefixes of the providers.
    (("hf_",), _START + r"(hf_)[A-Za-z0-9]{16,}", 0, rf"\1{MASK}"),
    (("api_org_",), _START + r"(api_org_)[A-Za-z0-9]{16,}", 0, rf"\1{MASK}"),
    (("sk-",), _START + r"(sk-(?:ant-|proj-|or-|svcacct-)?)[A-Za-z0-9_-]{16,}", 0, rf"\1{MASK}"),
    (("gh",), _START + r"(gh[pousr]_)[A-Za-z0-9]{20,}", 0, rf"\1{MASK}"),
    (("github_pat_",), _START + r"(github_pat_)[A-Za-z0-9_]{20,}", 0, rf"\1{MASK}"),
    (("glpat-",), _START + r"(glpat-)[A-Za-z0-9_-]{16,}", 0, rf"\1{MASK}"),
    (("xox",), _START + r"(xox[abposr]-)[A-Za-z0-9-]{10,}", 0, rf"\1{MASK}"),
    (("akia",), _START + r"(AKIA)[A-Z0-9]{16}(?![A-Za-z0-9])", 0, rf"\1{MASK}"),
    (("asia",), _START + r"(ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", 0, rf"\1{MASK}"),
    (("aiza",), _START + r"(AIza)[A-Za-z0-9_-]{35}", 0, rf"\1{MASK}"),
    (("wandb_v1_",), _START + r"(wandb_v1_)[A-Za-z0-9_]{20,}", 0, rf"\1{MASK}"),
    (("eyj",), _START + r"(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", 0, rf"\1{MASK}"),
    (("bearer",), r"\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE, rf"\1{MASK}"),
    (("basic",), r"\b(authorization['\"]?\s*[:=]\s*['\"]?basic\s+)[A-Za-z0-9+/=]{8,}", re.IGNORECASE, rf"\1{MASK}"),
    # 40 hexadecimal digits (a key of Weights & Biases) only beside a word that says so; alone they are a commit.
    (
        _ID_WORDS,
        r"((?:wandb|api[_ -]?key|\bkey|\btoken|\blogin|relogin|netrc)\b[^\n]{0,40}?)"
        r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])",
        re.IGNORECASE,
        rf"\1{MASK}",
    ),
    # name = "value" and name: value and --name value, where the name says secret.
    (
        _NAME_WORDS,
        rf"{_NAME_START}({_SECRET_NAME}['\"]?\s{{0,3}}(?:=|:|\s)\s{{0,3}}['\"])(?!\[masked\])[^'\"\n]{{3,200}}(?=['\"])",
        re.IGNORECASE,
        rf"\1{MASK}",
    ),
    (
        _NAME_WORDS,
        rf"{_NAME_START}({_SECRET_NAME}['\"]?\s{{0,3}}[=:]\s{{0,3}})"
        rf"(?!(?:self\.|args\.|config\.)?_?{_SECRET_NAME}\b)"
        r"(?!\[masked\]|None\b|True\b|False\b|null\b|os\.|[A-Za-z_]+\()[^\s'\",;&)\]}]{4,200}",
        re.IGNORECASE,
        rf"\1{MASK}",
    ),
    (
        ("@",),
        # The look-ahead keeps code such as q@k.transpose(…) and versions such as python@3.11 readable.
        rf"(?<![\w.+@/-])[A-Za-z0-9][\w.+-]{{0,63}}@(?:[A-Za-z0-9-]{{2,63}}\.){{1,4}}{_TLD}(?![\w(\[-])(?!\.\w)",
        0,
        "[masked e-mail]",
    ),
)
_SPOTS = re.compile(r"@|_|-|eyJ|AKIA|ASIA|AIza|bearer|key|token|secret|passw|pwd|login|netrc", re.IGNORECASE)


def mask(text: str) -> str:
    """``text`` with secrets and e-mail addresses masked. Idempotent."""
    if len(text) < 6 or _SPOTS.search(text) is None:
        return text
    lower = text.lower()
    for words, pattern, flags, by in _RULES:
        if any(word in lower for word in words):
            text = re.compile(pattern, flags).sub(by, text)  # compiled at its first use, kept by ``re``
    return text


def masked(value: T) -> T:
    """``value`` with every text in it masked: in dataclasses, lists, tuples and mappings."""
    result: T = _walk(value)
    return result


def _walk(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {_walk(key): _masked_setting(key, item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changes: dict[str, Any] = {}
        for part in fields(value):
            before = getattr(value, part.name)
            after = _walk(before)
            if part.name == "value" and isinstance(key := getattr(value, "key", None), str):
                after = _masked_setting(key, before)
            if after is not before and after != before:
                changes[part.name] = after
        return replace(value, **changes) if changes else value
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, (int, float)) for item in value):
            return value
        return [_walk(item) for item in value]
    return value


_SECRET_KEY = rf"(?:^|.*[._-]){_SECRET_NAME}$"


def _masked_setting(key: Any, value: Any) -> Any:
    """A text that is stored under a name that says secret is masked whole."""
    if isinstance(key, str) and isinstance(value, str) and value and re.match(_SECRET_KEY, key, re.IGNORECASE):
        return MASK
    return _walk(value)
