"""CUDA_VISIBLE_DEVICES is set after CUDA was used.

What: `os.environ["CUDA_VISIBLE_DEVICES"] = …` after a call in the same block that starts CUDA (`torch.cuda.…`,
`.cuda()`, `.to("cuda")`).
Why it matters: the driver reads the variable once, when CUDA starts; afterwards it changes nothing, and the job runs on
the wrong GPU.
When it is fine: after `import torch` alone, which does not start CUDA.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.order import position
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.told import told
from trainwreck.code.settings.variables import assigned
from trainwreck.core.evidence import Evidence

BAD = (
    """
import os
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
os.environ["CUDA_VISIBLE_DEVICES"] = "1"  # expect
net = torch.nn.Linear(2, 2).to(device)
""",
    """
import os, torch
def main(gpu):
    net = torch.nn.Linear(2, 2).cuda()
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)  # expect
""",
    """
import os, torch
x = torch.zeros(3, device="cuda:0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "2")  # expect
""",
)
GOOD = (
    """
import os
import torch
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
""",
    """
import os, torch
def other():
    return torch.cuda.is_available()
torch.manual_seed(0)
torch.cuda.amp.autocast
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
if __name__ == "__main__":
    if torch.cuda.is_available():
        os.environ["OTHER"] = "1"
""",
)
STARTING = frozenset(
    ["is_available", "device_count", "set_device", "current_device", "get_device_name", "get_device_properties",
     "synchronize", "empty_cache", "init", "mem_get_info", "memory_allocated", "get_device_capability"]
)  # fmt: skip


def find(project: Project) -> Iterator[Evidence]:
    for item in assigned(project):
        if item.name != "CUDA_VISIBLE_DEVICES" or item.node is None or item.scope is None:
            continue
        block = project.parent(project.statement(item.node, item.scope), item.scope)
        before = _started(project, item.node, item.scope, block)
        if before is not None:
            text = "CUDA_VISIBLE_DEVICES is set after CUDA was started and changes nothing any more"
            proof = [(item.place.path, before.line, ast.unparse(before.node)[:80])]
            fix = "set it before the first use of CUDA, best in the command that starts the program"
            yield told(__name__, item.name_place, text, proof=proof, fix=fix, key=item.name)


def _started(project: Project, node: ast.AST, scope: Scope, block: ast.AST | None) -> Call | None:
    """The first call before ``node``, in the same block of the same scope, that starts CUDA."""
    for call in project.calls_by_scope.get(scope, ()):
        if position(call.node) >= position(node) or not _starts(project, call):
            continue
        statement = project.statement(call.node, scope)
        if project.parent(statement, scope) is block:
            return call
    return None


def _starts(project: Project, call: Call) -> bool:
    name = call.name
    if name in STARTING and project.called(call) == f"torch.cuda.{name}":
        return True
    if name == "cuda" and isinstance(call.node.func, ast.Attribute) and not call.node.args:
        return project.called(call) != "torch.cuda"
    places = [*call.node.args, *(k.value for k in call.node.keywords if k.arg == "device")]
    moved = name == "to" or any(k.arg == "device" for k in call.node.keywords)
    return moved and any(
        (isinstance(p, ast.Constant) and isinstance(p.value, str) and p.value.startswith("cuda"))
        or (isinstance(p, ast.Call) and last_name(p.func) == "device" and _names_cuda(p))
        for p in places
    )


def _names_cuda(node: ast.Call) -> bool:
    return any(isinstance(a, ast.Constant) and str(a.value).startswith("cuda") for a in node.args)
