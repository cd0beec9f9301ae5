"""Arithmetic of the shell: whole numbers, the usual operators, brackets, names."""

from __future__ import annotations

from collections.abc import Callable

from trainwreck.code.pattern import pattern

_TOKEN = pattern(r"\s*(?:(\d+)|\$?\{?([A-Za-z_]\w*)\}?|(\*\*|<<|>>|[-+*/%()]))")
_ORDER = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "**": 3}
LIMIT = 1 << 62
MAX_TOKENS = 64


def evaluate(text: str, lookup: Callable[[str], int | None]) -> int | None:
    """The value of ``text``, None where a name is unknown or it is no plain arithmetic."""
    found: list[int | str] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or len(found) > MAX_TOKENS:
            return None
        if token[1]:
            found.append(int(token[1][:20]))
        elif token[2]:
            value = lookup(token[2])
            if value is None:
                return None
            found.append(value)
        else:
            found.append(token[3])
        at = token.end()
    try:
        value, rest = _sum(found, 0, 0)
    except (ZeroDivisionError, IndexError, ValueError, RecursionError):
        return None
    return value if rest == len(found) and abs(value) < LIMIT else None


def _sum(tokens: list[int | str], at: int, least: int) -> tuple[int, int]:
    value, at = _atom(tokens, at)
    while at < len(tokens):
        op = tokens[at]
        if not isinstance(op, str) or op not in _ORDER or _ORDER[op] <= least:
            break
        right, at = _sum(tokens, at + 1, _ORDER[op] - (op == "**"))
        value = _apply(op, value, right)
    return value, at


def _atom(tokens: list[int | str], at: int) -> tuple[int, int]:
    token = tokens[at]
    if isinstance(token, int):
        return token, at + 1
    if token in ("-", "+"):
        value, at = _atom(tokens, at + 1)
        return (-value if token == "-" else value), at
    if token == "(":
        value, at = _sum(tokens, at + 1, 0)
        if tokens[at] != ")":
            raise ValueError
        return value, at + 1
    raise ValueError


def _apply(op: str, left: int, right: int) -> int:
    if max(abs(left), abs(right)) > LIMIT or (op == "**" and not 0 <= right <= 62):
        raise ValueError
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return int(left / right) if max(abs(left), abs(right)) < 1 << 50 else left // right
        case "%":
            return left - right * int(left / right)
    return int(left**right)
