"""Shapes that the reading finds agree with what torch 2.13 made of the same code (``shapes.txt``: made by it)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from trainwreck.code.project import Project
from trainwreck.code.read import parse
from trainwreck.code.shapes import clashes
from trainwreck.code.shapes.domain import Shape
from trainwreck.code.shapes.expressions import Reading
from trainwreck.code.shapes.patterns import matched
from trainwreck.code.shapes.reading import Frame
from trainwreck.core.program import Module, Program

IMPORTS = "import torch\nimport numpy as np\nfrom torch import nn\nimport torch.nn.functional as F\n"
SNIPPETS = (Path(__file__).parent / "shapes.txt").read_text(encoding="utf-8").strip().split("\n\n")


def project(text: str) -> Project:
    module = parse("t.py", IMPORTS + text)
    assert isinstance(module, Module), module
    return Project(Program({"t.py": module}))


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_shapes_are_those_of_torch(snippet: str) -> None:
    code, _, said = snippet.rpartition("\n# torch: ")
    kind, _, rest = said.partition(" ")
    program = project(code)
    found = list(clashes(program))
    if kind == "error":
        assert found
        return
    assert not found
    reading = Reading(program)
    top = program.walked["t.py"].top
    frame = Frame(top, {})
    reading.block(top.module.tree.body, frame)
    shape, real = frame.names["out"], ast.literal_eval(rest)
    if not isinstance(shape, Shape):
        return  # unknown is no claim
    assert shape.open or len(shape.dims) == len(real)
    assert all(a in (None, b) for a, b in zip(reversed(shape.dims), reversed(real), strict=False))


def test_most_shapes_are_known() -> None:
    known = 0
    for snippet in SNIPPETS:
        program = project(snippet)
        reading, top = Reading(program), program.walked["t.py"].top
        frame = Frame(top, {})
        reading.block(top.module.tree.body, frame)
        shape = frame.names.get("out")
        known += isinstance(shape, Shape) and not shape.open and None not in shape.dims
    assert known >= 75


def test_a_pattern_tells_what_does_not_divide() -> None:
    shape, kind, text = matched("b (h p) -> b h p", Shape((2, 30)), {"p": 8})
    assert (shape.open, kind) == (True, "divide")
    assert "30" in text
    assert "8" in text


def test_a_loop_without_end_costs_a_bounded_time() -> None:
    lines = "\n".join(f"      x = nn.Linear({n}, {n + 1})(x)" for n in range(400))
    text = f"def f(x, n):\n  for i in range(60):\n{lines}\n  return f(x, n)\nf(torch.zeros(2, 0), 3)\n"
    assert isinstance(list(clashes(project(text))), list)
