"""The time of a GPU step is taken before the step is done.

What: ``time.time()`` or ``perf_counter()`` before and after work on CUDA, subtracted, with no
``torch.cuda.synchronize()``, ``.item()``, ``.cpu()`` or print of a result between.
Why it matters: kernels are only queued: the time is that of the queueing, often a hundredth of the work.
When it is fine: on the CPU, or over many steps where one of them waits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import source
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import time, torch
model, x = model.cuda(), x.cuda()
start = time.time()
out = model(x)
print("forward", time.time() - start)  # expect
""",
    """
import torch
from time import perf_counter
def measure(a, b):
    a, b = a.to("cuda"), b.to("cuda")
    t0 = perf_counter()
    c = torch.matmul(a, b)
    t1 = perf_counter()
    return t1 - t0  # expect
""",
    """
import time
import torch
def step(net, x, opt):
    begin = time.perf_counter()
    loss = net(x.cuda(non_blocking=True)).mean()
    loss.backward()
    opt.step()
    took = time.perf_counter() - begin  # expect
    return took
""",
)
GOOD = """
import time, torch
def a(model, x):
    x = x.cuda()
    start = time.time()
    out = model(x)
    torch.cuda.synchronize()
    return time.time() - start
def b(model, x):
    start = time.time()
    loss = model(x.cuda()).mean().item()
    return time.time() - start
def c(model, loader):
    start = time.time()
    for x in loader:
        model(x.cuda())
    print(time.time() - start)
def d(path):
    start = time.time()
    data = torch.load(path)
    return time.time() - start
"""
CLOCKS = frozenset(["time.time", "time.perf_counter", "time.monotonic"])
WAITS = pattern(
    r"synchronize|\.item\(|\.cpu\(|\.numpy\(|\.tolist\(|print\(|block_until_ready|barrier\(|decode\(|float\("
)
WORK = pattern(r"backward\(|matmul\(|\.step\(|(^|[\s=(])(self\.)?(model|net|network|encoder|generator)\(|\.forward\(")


def find(project: Project) -> Iterator[Evidence]:
    if not re.search(r"cuda", source(project)):
        return
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        starts = {n: s for s in project.within(scope, ast.Assign) for n in [_clock(project, s, scope)] if n is not None}
        for node in project.within(scope, ast.BinOp) if starts else ():
            assert isinstance(node, ast.BinOp)
            if not isinstance(node.op, ast.Sub) or not isinstance(node.right, ast.Name) or node.right.id not in starts:
                continue
            start = starts[node.right.id]
            end = starts.get(node.left.id) if isinstance(node.left, ast.Name) else None
            if end is None and not (isinstance(node.left, ast.Call) and _is_clock(project, node.left, scope)):
                continue
            between = _between(project, start, end or project.statement(node, scope), scope)
            if between is None or WAITS.search(between) or not WORK.search(between) or "cuda" not in _around(scope):
                continue
            place = (scope.module.path, getattr(start, "lineno", 1), written(start)[:80])
            text = "the kernels between these two clocks are queued, and nothing waits for them"
            yield sighting(__name__, (node, scope), text, proof=[place])


def _around(scope: Scope) -> str:
    return written(scope.node) if scope.kind == "function" else scope.module.text


def _clock(project: Project, node: ast.AST, scope: Scope) -> str | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
        return node.targets[0].id if _is_clock(project, node.value, scope) else None
    return None


def _is_clock(project: Project, node: ast.Call, scope: Scope) -> bool:
    return project.called(Call(node, scope)) in CLOCKS


def _between(project: Project, start: ast.AST, end: ast.AST, scope: Scope) -> str | None:
    """The statements of one block between two of it; None for other blocks, or where a loop stands between."""
    above = project.parent(start, scope)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, None)
        if isinstance(block, list) and any(s is start for s in block) and any(s is end for s in block):
            first, last = block.index(start), block.index(end)
            part = block[first + 1 : last]
            if any(isinstance(n, ast.For | ast.While) for s in part for n in ast.walk(s)):
                return None
            return "\n".join(written(s) for s in part)
    return None
