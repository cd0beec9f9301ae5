"""Version numbers and the conditions that requirements put on them, as far as a comparison of releases needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator

Version = tuple[int, ...]
_CLAUSE = re.compile(r"(===|==|~=|!=|>=|<=|<|>|\^|~|=)?\s*v?(\d+(?:\.\d+)*)(\.\*)?[\w.+-]*\s*$")


def parse(text: str) -> Version:
    """``4.46.3`` as (4, 46, 3); what follows the numbers (``.post1``, ``rc0``, ``+cu121``) does not count."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def clauses(specifier: str) -> Iterator[tuple[str, Version, bool]]:
    """(operator, version, prefix) of each part; what is no condition is left out."""
    for part in re.split(r"[,\s]+(?=[=~!<>^])|,", specifier):
        found = _CLAUSE.match(part.strip())
        if found:
            yield found[1] or "==", parse(found[2]), bool(found[3]) or found[1] == "="


def exact(specifier: str) -> Version | None:
    """The one version that ``specifier`` allows, None for a range."""
    for operator, version, prefix in clauses(specifier):
        if operator in ("==", "===", "=") and (not prefix or len(version) >= 2):
            return version
        if operator == "~=" and len(version) >= 3:
            return version
    return None


def allows(specifier: str, version: Version) -> bool:
    """True if ``version`` meets every part."""
    return all(_meets(operator, wanted, prefix, version) for operator, wanted, prefix in clauses(specifier))


def allows_some_below(specifier: str, version: Version) -> bool:
    """True if everything that ``specifier`` allows lies below ``version``."""
    return any(
        operator in ("<", "<=", "==", "=", "~=", "^", "~") and wanted <= version
        for operator, wanted, _ in clauses(specifier)
    )


def _meets(operator: str, wanted: Version, prefix: bool, version: Version) -> bool:
    width = max(len(wanted), len(version))
    a, b = _padded(version, width), _padded(wanted, width)
    match operator:
        case "==" | "===" | "=":
            return version[: len(wanted)] == wanted if prefix else a == b
        case "!=":
            return version[: len(wanted)] != wanted if prefix else a != b
        case ">=":
            return a >= b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case "<":
            return a < b
        case "~=":
            return a >= b and version[: max(len(wanted) - 1, 1)] == wanted[: max(len(wanted) - 1, 1)]
        case "^":
            return a >= b and version[: 1 if wanted[0] else 2] == wanted[: 1 if wanted[0] else 2]
        case "~":
            return a >= b and version[:2] == wanted[:2]
    return True


def _padded(version: Version, width: int) -> Version:
    return (*version, *[0] * (width - len(version)))


def reaches(specifier: str, version: Version) -> bool:
    """True if ``specifier`` allows ``version`` or something later."""
    one = exact(specifier)
    if one is not None:
        return _padded(one, 3) >= _padded(version, 3)
    for operator, wanted, prefix in clauses(specifier):
        width = max(len(wanted), len(version))
        limit, asked = _padded(wanted, width), _padded(version, width)
        if (operator == "<" and limit <= asked) or (operator == "<=" and limit < asked):
            return False
        if operator in ("~=", "^", "~", "==") and (wanted[:1] < version[:1] or (prefix and limit < asked)):
            return False
    return True


def starts_at(specifier: str, version: Version) -> bool:
    """True if everything that ``specifier`` allows is ``version`` or later."""
    one = exact(specifier)
    bounds = [one] if one is not None else [w for o, w, _ in clauses(specifier) if o in (">=", ">", "~=", "^", "~")]
    return any(_padded(b, 3) >= _padded(version, 3) for b in bounds)
