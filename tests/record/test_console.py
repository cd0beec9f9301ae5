"""What a program prints is kept beside its numbers, and is printed as it was."""

from __future__ import annotations

from pathlib import Path

import forked
import pytest

pytest.importorskip("torch", reason="torch is not installed")

PROGRAM = """
import logging, sys, warnings, numpy as np, torch
from torch import nn
log = logging.getLogger("train")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(logging.StreamHandler(sys.stdout))

class Odd:
    shown = 0
    def __str__(self):
        Odd.shown += 1
        return "odd"

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(30):
    loss = net(torch.ones(2, 3)).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 10 == 0:
        print("step", step, "loss", loss.detach() * 0 + 1, end="\\n\\n")
print("part", end=" "); print("of a line", {"accuracy": 0.5}, [1, 2], np.float64(0.25), sep="|")
print("bar 10%\\rbar 100%")
print(Odd(), torch.zeros(100))
print("elsewhere", file=open("other.txt", "w"))
log.info("logged %d", 7)
warnings.warn("mind this")
try:
    print("x", sep=3)
except TypeError as error:
    print("refused:", error)
print("odd was shown", Odd.shown, "time")
print("last", end="")
"""


def kept(folder: Path) -> list[str]:
    return (folder / "rec/console-rank0.log").read_text().splitlines()


def test_lines_are_kept_and_printed_as_they_were(tmp_path: Path) -> None:
    printed = forked.recorded(PROGRAM, tmp_path / "with")
    assert printed == forked.plain(PROGRAM, tmp_path / "without")
    lines = kept(tmp_path / "with")
    for line in (
        "step 20 loss tensor([1.])" if "tensor([1.])" in printed else "step 20 loss tensor(1.)",
        "part of a line|{'accuracy': 0.5}|[1, 2]|0.25",
        "bar 100%",
        "... ...",
        "INFO logged 7",
        "odd was shown 1 time",
        "last",
    ):
        assert line in lines
    assert any(line.endswith("UserWarning: mind this") for line in lines)
    assert any(line.startswith("refused: sep must be") for line in lines)
    assert not any("elsewhere" in line for line in lines)


def test_a_long_output_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    text = PROGRAM + "\nfor n in range(20_000):\n    print('line', n, 'x' * 60)\n"
    forked.recorded(text, tmp_path)
    lines = kept(tmp_path)
    assert "line 0 " + "x" * 60 in "\n".join(lines)
    assert lines[-1] == "line 19999 " + "x" * 60
    assert any(line.endswith("lines left out]") for line in lines)
    assert (tmp_path / "rec/console-rank0.log").stat().st_size < 1 << 20


def test_a_compiled_function_that_prints_is_compiled_as_without_us(tmp_path: Path) -> None:
    text = """
import torch
from torch import nn
net = nn.Linear(3, 1)
graphs = []
def count(graph, inputs):
    graphs.append(graph)
    return graph.forward
@torch.compile(backend=count)
def forward(x):
    x = x * 2
    print("inside")
    return net(x)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = forward(torch.ones(2, 3)).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
print("graphs", len(graphs))
"""
    assert forked.recorded(text, tmp_path / "with") == forked.plain(text, tmp_path / "without")


def test_a_child_that_only_reads_data_writes_no_console(tmp_path: Path) -> None:
    text = (
        PROGRAM
        + """
import os
child = os.fork()
if not child:
    print("in the child", flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    )
    forked.recorded(text, tmp_path)
    assert not any("in the child" in line for line in kept(tmp_path))


def test_a_lock_that_a_fork_has_copied_stops_no_print(tmp_path: Path) -> None:
    text = (
        PROGRAM
        + """
import os
from trainwreck.record.inside.console import Console
probe = next(p for p in __import__("gc").get_objects() if type(p) is Console)
import threading
held, done = threading.Event(), threading.Event()
def hold():
    with probe._lock:
        held.set(); done.wait(5)
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if not child:
    print("printed by the child", flush=True)
    os._exit(0)
os.waitpid(child, 0)
done.set()
"""
    )
    assert "printed by the child" in forked.recorded(text, tmp_path)
