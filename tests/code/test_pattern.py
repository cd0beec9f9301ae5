"""Patterns that are compiled late say the same as compiled ones."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trainwreck
from trainwreck.code.pattern import pattern, words

CODE = Path(trainwreck.__file__).parent / "code"


def _texts() -> list[str]:
    """Every expression that is written out in ``pattern(...)`` below ``trainwreck/code``."""
    found = set()
    for path in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Call(func=ast.Name(id="pattern"), args=[ast.Constant(value=str(text)), *_]):
                    found.add(text)
    return sorted(found)


TEXTS = _texts()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"cuda|\bmps\b|x\.device", ["cuda", "mps", "x.device"]),
        (r"api_?key|tokens?\b", ["api", "token"]),
        (r"(?<![a-z])codes?(?![a-z])|quant(?!ile)", ["code", "quant"]),
        (r"^(train|training)$", ["train", "training"]),
        (r"(^|_)loss(_|$)", ["loss"]),
        (r"ab{2,3}c", ["a"]),
        (r"ab+c", ["ab"]),
        (r"ab{c", ["ab"]),
        (r"a\[b[|)]c|(x[(]|y\))z", ["a[b", "z"]),
        (r"(ab)?c*d", ["d"]),
        (r"[\]a-z]+|x", []),
        (r"\d+\w", []),
        (r"a|", []),
        (r"(?i)a", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


def test_most_patterns_have_words() -> None:
    assert sum(bool(words(text)) for text in TEXTS) > 0.7 * len(TEXTS) > 200


@given(st.data())
def test_the_same_is_found(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    flags = data.draw(st.sampled_from([0, re.IGNORECASE]))
    compiled = re.compile(text, flags)
    inside = data.draw(st.from_regex(compiled))
    around = data.draw(st.text(max_size=5))
    for string in (inside, around, around + inside, inside.upper()):
        for way in ("search", "match", "fullmatch"):
            found, wanted = getattr(pattern(text, flags), way)(string), getattr(compiled, way)(string)
            assert (found and found.span()) == (wanted and wanted.span())


def test_a_used_pattern_still_asks_a_long_text_for_its_words_first() -> None:
    """Else a process that has compiled the expressions takes five times as long for the next program."""

    class Never:
        def search(self, *_: object) -> None:
            raise AssertionError("the expression was searched for in a text that holds none of its words")

    lazy = pattern(r"window|look_?back", re.IGNORECASE)
    assert lazy.search("the WINDOW")
    lazy._compiled = Never()  # type: ignore[attr-defined]
    assert lazy.search("x = 1\n" * 1000) is None
