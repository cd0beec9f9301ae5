"""Cut a line of console text into words and numbers.

``cut`` returns ``[words, number, words, number, …, words]``: the words are the shape of the line, by which ``learn``
decides once what the numbers mean. Digits inside identifiers (``rank3``, ``mAP50-95``, ``acc@1``, ``GPT-2``,
``v1.2.3``) belong to the words.
"""

from __future__ import annotations

import re

_FINITE = (
    r"[-+.0-9](?<![\w.@][-+.0-9])(?<!\w-[0-9])"  # starts with a sign, a point or a digit, not glued to an identifier
    r"(?:(?<=[0-9])|(?<=[-+])(?=\.?[0-9])|(?<=\.)(?=[0-9]))"
    r"(?:(?<![0-9]:[1-9])(?<=[1-9])[0-9]{0,2}(?:,[0-9]{3})+(?![0-9])|[0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?"
)
_NOT_A_VALUE = r"(?!\s+(?:iterations?|values?|grad\w*|or|in|detected|loss\w*|count|checks?|steps?|found|encountered)\b)"
_NONFINITE = rf"(?<![\w@])[-+]?(?:[nN][aA][nN]|[iI]nf(?:inity)?|INF)(?=ms\b|s\b|%|\b){_NOT_A_VALUE}"

FINITE = re.compile(f"({_FINITE})")
ANY = re.compile(f"({_NONFINITE}|{_FINITE})")
_VALUE_WORD = re.compile(_NONFINITE)
_NONFINITE_WORDS = ("nan", "inf", "NaN", "Inf", "NAN", "INF")
_BAR = re.compile(r"(\d%)\|[^|]{0,400}\|")
_ESPNET_RANGE = re.compile(r"(\d+)-(\d+)batch")

PREFIX = re.compile(
    r"""(?:\s*(?:
    [\[(<]?(?:\d{4}[-/]\d\d?[-/]\d\d?)?[ T_]?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?:Z|\s?[-+]\d\d:?\d\d)?[\])>]?(?![\w/])
    |[\[(]?\d{4}[-/]\d\d[-/]\d\d[\])]?(?=[\s|])
    |[IWEF]\d{4}\ \d\d:\d\d:\d\d(?:\.\d+)?\s+\d+\s+[\w.]+:\d+\]
    |[\[(]?(?:rank|default|local_rank|global_rank|RANK|Rank|worker|host|node|process|gpu|GPU|proc)[\s:=_]?\d+[\])]?:?(?=\s|\[|$)
    |\[\d+,\d+\]<std\w+>:
    |\(\w[\w.]*\ pid=\d+(?:,\ ip=[\d.]+)?\)
    |\[?(?:INFO|DEBUG|WARNING|WARN|ERROR|CRITICAL|NOTICE)\s*\]?(?::[\w.]+:|:|(?=[\s|\-]|$))
    |\[?[\w.\-/]+\.(?:py|cc|cpp|cu):\d+(?::[\w<>]+)?\]?:?
    |\((?:\w+|<\w+>):\d+\)
    |\[titan\]|\[[\w.\-]+\](?=\ *\d{4}-\d\d)
    |-\s*[\w.]+\s*-(?=\s*\[?(?:INFO|DEBUG|WARN|ERROR|NOTICE))
    |(?:\w+\.)+\w+(?=\s*[-|:]\s*(?:INFO|DEBUG|WARN|ERROR))
    |[|](?=\s)|[-]\s(?=[^\d\s])
    )\s*)*""",
    re.VERBOSE,
)
"""Time stamps, levels, logger names, ranks and actors before the message."""

RANK = re.compile(
    r"(?:\[|\()(?:rank|default|local_rank|global_rank|Rank|RANK)[\s:=_]?(\d+)[\])]|^\s*(?:rank|Rank)[\s:=_]?(\d+)[\s:|]"
    r"|^\[\d+,(\d+)\]<std|\brank[ =_]?(\d+)\b(?=.{0,40}\bloss\b)"
)


def cut(text: str) -> list[str]:
    """Words and numbers of ``text``, alternating, words first and last. Progress bars lose their picture."""
    if "%|" in text:
        text = _BAR.sub(r"\1||", text)
    if "batch:" in text and "epoch:" in text:
        text = _ESPNET_RANGE.sub(r"\1 - \2 batch", text)
    if "0.5:0.95" in text or "0.50:0.95" in text:
        text = text.replace("0.5:0.95", "0.5-0.95").replace("0.50:0.95", "0.50-0.95")
    return (ANY if _has_nonfinite(text) else FINITE).split(text)


def _has_nonfinite(text: str) -> bool:
    """True if ``nan`` or ``inf`` stands as a value in ``text``. The pattern is asked only where the letters are."""
    if not ("nan" in text or "inf" in text or "NaN" in text or "Inf" in text or "NAN" in text or "INF" in text):
        return False
    for word in _NONFINITE_WORDS:
        at = text.find(word)
        while at >= 0:
            if _VALUE_WORD.match(text, at):
                return True
            at = text.find(word, at + 1)
    return False


def value(token: str) -> float:
    """The number that ``cut`` found. Thousands commas are dropped."""
    try:
        return float(token)
    except ValueError:
        try:
            return float(token.replace(",", ""))
        except ValueError:
            return float("nan")


def without_rank(text: str) -> tuple[int | None, str]:
    """Rank and message of a line that torchrun marked (``[rank3]:``, ``[default3]:``), else None and the line."""
    if text.startswith(("[rank", "[default")):
        end = text.find("]:", 5, 16)
        digits = text[5:end] if text[1] == "r" else text[8:end]
        if end > 0 and digits.isdigit():
            return int(digits), text[end + 2 :].removeprefix(" ")
    return None, text


def rank_of(text: str) -> int | None:
    """The rank that the line says it comes from."""
    match = RANK.search(text[:200])
    if match is None:
        return None
    digits = next(g for g in match.groups() if g is not None)
    return int(digits) if len(digits) < 7 else None


def prefix_numbers(tokens: list[str]) -> tuple[int, str]:
    """How many of the numbers stand in the prefix, and the message after it."""
    text = "".join(tokens)
    match = PREFIX.match(text)
    end = match.end() if match else 0
    position, count = 0, 0
    for index, token in enumerate(tokens):
        position += len(token)
        if position > end:
            break
        if index % 2:
            count += 1
    return count, text[end:]
