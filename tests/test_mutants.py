"""Mutation testing of the rules: the tool changes one place at a time, and the rules see the ones that matter."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

TOOL = Path(__file__).parent.parent / "tools/mutants.py"
SPEC = importlib.util.spec_from_file_location("mutants_tool", TOOL)
assert SPEC is not None
assert SPEC.loader is not None
tool = importlib.util.module_from_spec(SPEC)
sys.modules["mutants_tool"] = tool
SPEC.loader.exec_module(tool)

SCRIPT = """
import torch, torch.nn as nn, torch.nn.functional as F
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters(), lr=0.001)
for x, y in loader:
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("loss", loss.item() / 2)
"""


def test_each_mutant_is_one_edit_of_valid_code() -> None:
    made = list(tool.mutants(SCRIPT))
    original = ast.unparse(ast.parse(SCRIPT))
    assert {m.kind for m in made} == {"constant", "delete", "arguments"}
    for mutant in made:
        ast.parse(mutant.code)
        assert mutant.code != original
        assert "print('loss', loss.item() / 2)" in mutant.code


def test_what_harms_is_seen() -> None:
    unseen = {m.what for m in tool.mutants(SCRIPT) if m.kind in ("delete", "arguments") and not tool.said(m.code)}
    assert not tool.said(SCRIPT)
    assert unseen == set()
