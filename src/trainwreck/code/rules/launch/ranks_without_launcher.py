"""A script that needs a launcher is started by plain `python`.

What: `python train.py` for a program that reads `os.environ["RANK"]`, `["LOCAL_RANK"]` or `["WORLD_SIZE"]` (or calls
`init_process_group` without a rank) on its way, where no script sets them.
Why it matters: a KeyError, or "environment variable RANK expected, but not set".
When it is fine: under `srun` and `mpirun`, where the variables come from outside, and where the program asks first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.index import of
from trainwreck.code.settings.told import told
from trainwreck.code.settings.variables import assigned
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- train.py
import os
import torch.distributed as dist
def main():
    rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl")
main()
#--- run.sh
python train.py --lr 1e-4  # expect
""",
    """
#--- train.py
import torch
torch.distributed.init_process_group(backend="nccl")
#--- run.sh
CUDA_VISIBLE_DEVICES=0 python -u train.py  # expect
""",
)
GOOD = (
    """
#--- train.py
import os
import torch.distributed as dist
def main():
    if "RANK" in os.environ:
        dist.init_process_group("nccl")
    rank = int(os.environ.get("LOCAL_RANK", 0))
main()
#--- run.sh
python train.py
srun python other.py
""",
    """
#--- train.py
import os
import torch.distributed as dist
dist.init_process_group("nccl")
#--- run.sh
torchrun --nproc_per_node 2 train.py
srun --ntasks 4 python train.py
RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=1 python train.py
#--- spawned.py
import torch.distributed as dist
import torch.multiprocessing as mp
def work(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
mp.spawn(work, nprocs=2)
#--- other.sh
python spawned.py
""",
)
RANKS = frozenset(["RANK", "LOCAL_RANK", "WORLD_SIZE"])


def find(project: Project) -> Iterator[Evidence]:
    settings = of(project)
    set_in_python = {a.name for a in assigned(project) if a.node is not None}
    told_of: set[str] = set()
    for launch in settings.launches:
        path = settings.script_of(launch)
        if launch.launcher != "python" or path is None or path in told_of or launch.wrappers & {"srun", "mpirun"}:
            continue
        if RANKS & launch.env.keys() or RANKS & set_in_python or not launch.command.certain:
            continue
        needed = _needed(project, path)
        if needed is not None:
            told_of.add(path)
            text = f"{path} needs the ranks that torchrun sets, but is started by python alone"
            fix = f"torchrun --standalone --nproc_per_node=N {path}"
            yield told(__name__, launch.place, text, proof=[needed], fix=fix, severity="critical")


def _needed(project: Project, path: str) -> tuple[str, int, str] | None:
    """Where the program needs a rank without having asked whether there is one."""
    walked = project.walked[path]
    text = walked.top.module.text
    if "spawn" in text or "mp.Process" in text:
        return None
    for scope in walked.scopes:
        for node in project.within(scope, ast.Subscript):
            assert isinstance(node, ast.Subscript)
            key = node.slice
            if not isinstance(key, ast.Constant) or key.value not in RANKS or not isinstance(node.ctx, ast.Load):
                continue
            if project.dotted(node.value, scope) == "os.environ" and _on_the_way(project, node, scope):
                return path, node.lineno, ast.unparse(node)
    for call in project.calls("init_process_group"):
        if call.scope.module.path != path or not project.called(call).startswith("torch."):
            continue
        given = {k.arg for k in call.node.keywords}
        if given & {"rank", "init_method", "store", None} or not _on_the_way(project, call.node, call.scope):
            continue
        return path, call.line, ast.unparse(call.node)[:80]
    return None


def _on_the_way(project: Project, node: ast.AST, scope: Scope, depth: int = 0) -> bool:
    """True if the node runs whenever the script is started: no test or handler around it, up to the module."""
    for above in project.ancestors(node, scope):
        if isinstance(above, ast.If) and not _is_main(above):
            return False
        if isinstance(above, ast.Try | ast.IfExp | ast.While | ast.ExceptHandler | ast.ClassDef | ast.BoolOp):
            return False
        if isinstance(above, ast.FunctionDef):
            break
    if scope.kind == "module":
        return True
    if scope.kind != "function" or depth > 3 or _leaves_early(scope, node):
        return False
    callers: list[Call] = project.callers(scope)
    return any(_on_the_way(project, c.node, c.scope, depth + 1) for c in callers)


def _leaves_early(scope: Scope, node: ast.AST) -> bool:
    """True if the function may return before ``node``."""
    line = int(getattr(node, "lineno", 0))
    return any(isinstance(n, ast.Return) and n.lineno < line for n in ast.walk(scope.node))


def _is_main(node: ast.If) -> bool:
    return "__name__" in ast.unparse(node.test)
