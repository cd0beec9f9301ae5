"""Corrections made from syntax nodes keep everything around them."""

from __future__ import annotations

import ast

import pytest

from trainwreck.checking import fixes
from trainwreck.code import edits
from trainwreck.code.project import Project
from trainwreck.code.read import build
from trainwreck.core.fix import Fix
from trainwreck.core.results import Finding
from trainwreck.core.source import from_bytes


def corrected(text: str, make: object) -> str:
    project = Project(build([from_bytes("a.py", text.encode())]))
    call = next(iter(project.calls("f")))
    fix = make(call.node, call.scope)  # type: ignore[operator]
    assert isinstance(fix, Fix)
    done = fixes.apply([Finding("x", "code-x", "warning", "", "a.py", 1, fix=fix)], {"a.py": text}, unsafe=True)
    return done.texts.get("a.py", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a, old=1)  # é\n", "f(a, new=1)  # é\n"),
        ("f(\n    'é', old = 1,\n)\n", "f(\n    'é', new = 1,\n)\n"),
        ("f(old=1, new=2)\n", "f(old=1, new=2)\n"),
        ("f(other=1)\n", "f(other=1)\n"),
    ],
)
def test_a_keyword_is_renamed(text: str, expected: str) -> None:
    assert corrected(text, lambda n, s: edits.rename_keyword(n, "old", "new", s, "rename")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a, old=1)\n", "f(a)\n"),
        ("f(old=1, b=2)\n", "f(b=2)\n"),
        ("f(old=1)\n", "f()\n"),
        ("f(a, old=1, **kw)\n", "f(a, **kw)\n"),
        ("f(\n    a,\n    old=1,\n    b=2,\n)\n", "f(\n    a,\n    b=2,\n)\n"),
        ("f(\n    a,  # why\n    old=1,\n)\n", "f(\n    a,  # why\n    old=1,\n)\n"),
    ],
)
def test_a_keyword_is_removed(text: str, expected: str) -> None:
    assert corrected(text, lambda n, s: edits.remove_keyword(n, "old", s, "remove")) == expected


def test_a_node_and_an_attribute_are_rewritten() -> None:
    def attribute(node: ast.Call, scope: object) -> Fix:
        assert isinstance(node.args[0], ast.Attribute)
        return edits.rename_attribute(node.args[0], "new", scope, "rename")  # type: ignore[arg-type]

    assert corrected("f(a.b.old, 2)\n", attribute) == "f(a.b.new, 2)\n"
    assert corrected("f('ü', 1 + 1)\n", lambda n, s: edits.replace(n.args[1], s, "2", "sum")) == "f('ü', 2)\n"
