"""A rule is left unloaded only where it could see nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwreck.code.choice import possible
from trainwreck.code.project import Project
from trainwreck.code.read import build, parse
from trainwreck.code.rule import rules
from trainwreck.code.triggers import BESIDE, index
from trainwreck.core.program import Module, Program
from trainwreck.core.source import from_bytes

CODE = Path(__file__).parents[2] / "src/trainwreck/code"
INDEX = index(CODE)


def project(text: str) -> Project:
    module = parse("train.py", text)
    assert isinstance(module, Module)
    return Project(Program({"train.py": module}))


def needs(tmp_path: Path, body: str) -> list[str] | None:
    """The words of a rule with this source."""
    code = tmp_path / "code"
    (code / "rules/family").mkdir(parents=True)
    (code / "rules/family/some_rule.py").write_text(body)
    finds, words, _ = index(code)["family.some_rule"]
    assert finds
    return words


def test_a_rule_whose_words_are_missing_sees_nothing_in_any_example() -> None:
    """The examples of every rule, each given to all rules that the words rule out."""
    every = {rule.name.partition(".rules.")[2]: rule for rule in rules()}
    assert sorted(every) == sorted(INDEX)
    held_back = 0
    for text in [text for rule in rules() for text in (*rule.bad, *rule.good)]:
        files = [part.partition("\n") for part in text.split("#--- ")[1:]] or [("train.py", "", text)]
        program = Project(build([from_bytes(name.strip(), body.encode()) for name, _, body in files]))
        if program.program.others or any(walked.top.module.cells for walked in program.walked.values()):
            text += BESIDE
        for name, (finds, words, _) in INDEX.items():
            if finds and words is not None and not any(word in text for word in words):
                held_back += 1
                assert [e.text for e in every[name].find(program)] == [], name  # type: ignore[misc]
    assert held_back > 10_000


def test_most_rules_stay_unloaded_for_a_small_script() -> None:
    chosen = possible(project("import torch\nprint(torch.ones(3).mean())\n"))
    assert len(chosen) < 0.65 * len(rules())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def find(project):\n    for c in project.calls('a', 'b'):\n        yield c", ["a", "b"]),
        (
            "N = ('a',)\nM = {*N, 'b'}\ndef find(project):\n    for c in project.calls(*sorted(M)):\n"
            "        yield c", ["a", "b"],
        ),
        ("def find(project):\n    yield 1", None),
        ("def find(project):\n    for s in project.scopes:\n        yield s", None),
        ("def find(project):\n    for c in project.calls(NAME):\n        yield c", None),
        (
            "def find(project):\n    if not has(project):\n        return\n    yield 1\n"
            "def has(project):\n    return bool(project.calls_by_name.get('a') or project.calls_by_name.get('b'))",
            ["a", "b"],
        ),
        (
            "from trainwreck.code.facts import source\n"
            "def find(project):\n    if 'cuda' not in source(project):\n        return\n    yield 1",
            ["cuda"],
        ),
        ("def find(project):\n    c = [x for x in project.calls('a') if x]\n    yield from c", ["a"]),
        (
            "def find(project):\n    c = []\n    for x in project.calls('a'):\n"
            "        c.append(x)\n    yield from c", ["a"],
        ),
        ("def find(project):\n    c = []\n    fill(project, c)\n    yield from c\ndef fill(p, c): c.append(1)", None),
        ("def find(project):\n    c = []\n    d = c\n    d.append(1)\n    yield from c", None),
        ("def find(project):\n    c = []\n    def inner(): c.append(f())\n    inner()\n    yield from c", None),
        (
            "def find(project):\n    c = next((x for x in project.calls('a')), None)\n"
            "    if c is None:\n        return\n    yield c",
            ["a"],
        ),
        (
            "def find(project):\n    c = look(project)\n    if c is not None:\n"
            "        yield c\ndef look(p): return []", None,
        ),
        ("def find(project):\n    if len(list(project.calls('a'))) != 1:\n        return\n    yield 1", ["a"]),
        ("def find(project):\n    if len(list(project.calls('a'))) != 0:\n        return\n    yield 1", None),
        ("WORDS = ('x', 'y')\ndef find(project):\n    yield 1", ["x", "y"]),
        (
            "def find(project):\n    yield from a(project)\ndef a(p):\n"
            "    yield from b(p)\ndef b(p):\n    yield from a(p)", None,
        ),
    ],
)  # fmt: skip
def test_words_are_read_off_a_rule(tmp_path: Path, body: str, words: list[str] | None) -> None:
    assert needs(tmp_path, body) == words
