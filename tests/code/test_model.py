"""The program model: names, calls, values and flow of ordinary code, and code that is no code."""

from __future__ import annotations

import ast
import json
import time

import pytest

from trainwreck.code.calls import Call, written
from trainwreck.code.flow import back
from trainwreck.code.order import training_steps, under_no_grad
from trainwreck.code.project import Project
from trainwreck.code.read import MAX_BYTES, build, parse
from trainwreck.code.surface import surfaces
from trainwreck.code.values import values
from trainwreck.code.witness import witness
from trainwreck.core.failure import Failure, Frame
from trainwreck.core.program import Module, Program
from trainwreck.core.source import Source, from_bytes


def project(**files: str) -> Project:
    sources = [from_bytes(name.replace("__", "/") + ".py", text.encode()) for name, text in files.items()]
    return Project(build(sources))


def call(found: Project, name: str) -> Call:
    return next(iter(found.calls(name)))


def test_names_are_resolved_however_they_are_imported() -> None:
    found = project(
        a="import torch.nn.functional as F\nfrom torch import nn\nfrom torch.nn import functional\n"
        "ce = F.cross_entropy\nF.relu(1)\nnn.Linear(1, 2)\nfunctional.gelu(1)\nce(1, 2)\n"
    )
    assert found.called(call(found, "relu")) == "torch.nn.functional.relu"
    assert found.called(call(found, "Linear")) == "torch.nn.Linear"
    assert found.called(call(found, "gelu")) == "torch.nn.functional.gelu"
    assert found.called(call(found, "ce")) == "torch.nn.functional.cross_entropy"


def test_calls_reach_functions_in_other_files() -> None:
    found = project(
        pkg__model="class Net:\n    def forward(self, x):\n        return x\n",
        train="from pkg.model import Net\nnet = Net()\nnet(3)\n",
    )
    net = call(found, "net")
    owner = found.class_of(net.node.func, net.scope)
    assert owner is not None
    assert owner.module.path == "pkg/model.py"
    assert [c.line for c in found.callers(owner.children[0])] == [3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N = 4\nuse(N * 2 + 1)", [9]),
        ("def f(n=3):\n    use(n)\nf()\nf(5)", [5, 3]),
        (
            "p = argparse.ArgumentParser()\np.add_argument('--lr', default=0.1)\nuse(p.parse_args().lr)",
            [0.1],
        ),
        ("NAMES = ['a', 'b', 'c']\nuse(len(NAMES))", [3]),
        ("NAMES = ['a']\nNAMES.append('b')\nuse(len(NAMES))", []),
        ("if x:\n    n = 1\nelse:\n    n = 2\nuse(n)", [1, 2]),
        ("class C:\n    rate: float = 0.5\nc = C()\nuse(c.rate)", [0.5]),
        ("use(read())", []),
        ("n = 2 ** 4096\nuse(2 ** 4096)", []),
    ],
)
def test_values_of_all_branches_and_call_sites(text: str, expected: list[object]) -> None:
    found = project(a=text)
    use = call(found, "use")
    assert [k.value for k in values(found, use.node.args[0], use.scope)] == expected


def test_flow_goes_through_loader_dataset_and_attribute() -> None:
    found = project(
        data="""
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __init__(self, names):
        self.index = {n: i for i, n in enumerate(names, 1)}
    def __getitem__(self, i):
        return self.x[i], self.index[self.names[i]]
def run(model, loader, loss):
    for step, (x, y) in enumerate(loader):
        loss(model(x), y)
def main(loss):
    loader = DataLoader(Data(["a"]), batch_size=2)
    run(None, loader, loss)
"""
    )
    use = call(found, "loss")
    lines = [s.line for s in back(found, use.node.args[1], use.scope) if "enumerate(names" in written(s.node)]
    assert 5 in lines


def test_flow_ends_on_cycles() -> None:
    found = project(a="def f(x):\n    y = g(x)\n    return y\ndef g(x):\n    x = f(x)\n    return x\nuse(f(1))\n")
    use = call(found, "use")
    assert len(list(back(found, use.node.args[0], use.scope))) < 50


def test_training_step_and_no_grad() -> None:
    found = project(
        a="""
import torch
def train(model, loader, optimizer, scheduler):
    for epoch in range(3):
        for x in loader:
            optimizer.zero_grad()
            model(x).backward()
            optimizer.step()
        scheduler.step()
        with torch.no_grad():
            check(model)
"""
    )
    (step,) = training_steps(found)
    assert [c.line for c in step.steps] == [8]
    assert [c.line for c in step.zeros] == [6]
    assert step.schedulers == []
    check = call(found, "check")
    assert under_no_grad(found, check.node, check.scope) is not None


def test_frames_are_found_by_suffix_or_by_text() -> None:
    found = project(src__train="def main():\n    fail()\nmain()\n")
    frames = [Frame("/somewhere/else/train.py", 3, "<module>", "main()"), Frame("C:\\x\\other.py", 9, "main", "fail()")]
    (surface,) = surfaces(found, [Failure("ValueError", "no", frames)])
    assert [(s.line, s.scope.name) for s in surface.spots] == [(2, "main"), (3, "src/train.py")]


def test_notebook_cells_keep_their_lines() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# title"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install x\n", "import torch"]},
        {"cell_type": "code", "source": "if True:\n    !ls\nx = 1"},
        {"cell_type": "code", "source": "%%bash\nrm -rf x"},
    ]
    program = build([from_bytes("n.ipynb", json.dumps({"cells": cells}).encode())])
    assert program.problems == []
    assert program.modules["n.ipynb"].cells == [1, 4, 7]


@pytest.mark.parametrize(
    "data",
    [
        b"def f(:\n",
        b"\x00\x01\x02",
        b"x = " + b"(" * 5000 + b")" * 5000,
        b"\xff\xfe\x00",
        "x = 1\n".encode("utf-16"),
        b"-" * 20000 + b"1",
    ],
    ids=["syntax", "nulls", "nesting", "bom", "utf-16", "unary"],
)
def test_what_is_no_python_is_a_problem_and_never_an_error(data: bytes) -> None:
    sources = [from_bytes("bad.py", data), from_bytes("good.py", b"x = 1\n")]
    program = build(sources)
    assert "good.py" in program.modules
    witness(program, [Failure("ValueError", "x", [Frame("bad.py", 1, "f", "def f(:")])])


def test_deep_expressions_do_not_exhaust_the_stack() -> None:
    text = "x = " + " + ".join(["a"] * 3000) + "\n"
    module = parse("deep.py", text)
    if isinstance(module, Module):
        assert not witness(Program({"deep.py": module})).evidence


def test_large_files_are_left_out() -> None:
    source = Source("big.py", from_bytes("big.py", b"x=1").open, b"x=1", MAX_BYTES + 1)
    program = build([source])
    assert program.modules == {}
    assert "larger than" in program.problems[0].reason


def test_nothing_is_run(tmp_path: object) -> None:
    program = build([from_bytes("a.py", b"raise SystemExit(7)\n__import__('os').abort()\n")])
    assert list(program.modules) == ["a.py"]
    assert isinstance(program.modules["a.py"].tree, ast.Module)


def test_the_time_grows_with_the_lines_and_not_with_their_square() -> None:
    block = """
def train_{0}(model, loader, optimizer):
    for x, y in loader:
        loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

    def used(functions: int) -> float:
        text = "import torch\n" + "".join(block.format(n) for n in range(functions))
        start = time.process_time()
        witness(build([from_bytes("long.py", text.encode())]))
        return time.process_time() - start

    used(10)  # loads the rules
    small = min(used(150) for _ in range(2))
    assert used(900) < 6 * 3 * small, "six times the lines; their square would be 36 times"
