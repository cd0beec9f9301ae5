"""A collective is called by one rank only.

What: ``barrier``, ``all_reduce``, ``all_gather`` or ``broadcast`` stands inside ``if rank == 0`` with no partner in
the other branch.
Why it matters: the other ranks never call it: all wait until the timeout.
When it is fine: on a subgroup that only this rank belongs to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import (
    inside,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.collectives import on_one_rank
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import FunctionNode
from trainwreck.code.topics import PROCESSES
from trainwreck.core.evidence import Evidence

WORDS = PROCESSES
BAD = (
    """
import torch.distributed as dist
def save(model, rank):
    if rank == 0:
        write(model)
        dist.barrier()  # expect
""",
    """
import torch
def log(loss):
    if torch.distributed.get_rank() == 0:
        torch.distributed.all_reduce(loss)  # expect
        print(loss)
""",
    """
from torch import distributed
class Trainer:
    def end(self):
        if self.is_main_process:
            out = [None] * 2
            distributed.all_gather_object(out, self.stats)  # expect
""",
    """
import torch.distributed as dist
def finish(model, rank):
    if rank != 0:
        return
    write(model)
    dist.barrier()  # expect
""",
)
GOOD = """
import torch.distributed as distance
def finish_all(model, rank, world_size):
    if world_size == 1:
        return
    distance.barrier()
    if rank != 0:
        return
    write(model)
import torch.distributed as dist
def save(model, rank, group):
    if rank == 0:
        write(model)
    dist.barrier()
    if rank == 0:
        dist.broadcast(model, src=0)
    else:
        dist.broadcast(model, src=0)
    if rank == 0:
        download()
        dist.barrier()
    if rank != 0:
        dist.barrier()
        load()
    if rank == 0:
        dist.all_reduce(model, group=group)
    if dist.get_world_size() > 1:
        dist.barrier()
def zero_first(local_rank):
    if local_rank not in [-1, 0]:
        dist.barrier()
    yield
    if local_rank == 0:
        dist.barrier()
def save_first(model, rank, local_rank):
    if rank != 0:
        dist.barrier()
    else:
        write(model)
        if local_rank == 0:
            dist.barrier()
"""
COLLECTIVES = frozenset(
    [
        "barrier",
        "all_reduce",
        "all_gather",
        "all_gather_object",
        "broadcast",
        "broadcast_object_list",
        "reduce_scatter",
        "all_to_all",
        "all_gather_into_tensor",
    ]
)
RANK = pattern(
    r"(^|[\w.]*_|\.)rank(\(\))? (==|!=|>) 0|is_main|is_master|"
    r"is_master|is_rank_zero|is_local_main|get_rank\(\) == 0|not [\w.]*rank\b",
    re.IGNORECASE,
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), on_one_rank)


def _seen(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*sorted(COLLECTIVES)):
        if not project.called(call).startswith("torch.distributed") or call.argument("group") is not None:
            continue
        gone = _left_before(project, call)
        if gone is not None:
            yield sighting(__name__, call, f"the ranks that returned before never call {call.name}", proof=[gone])
            continue
        branches = _by_rank(project, call)
        if any(_partner(project, call, branch) for branch in branches):
            continue
        for above in branches:
            if _elsewhere(project, call, above):
                break
            yield sighting(
                __name__,
                call,
                f"only the ranks of this branch call {call.name}: the others never do",
                proof=[(call.scope.module.path, above.lineno, f"if {written(above.test)[:60]}:")],
            )
            break


def _by_rank(project: Project, call: Call) -> list[ast.If]:
    """The branches around ``call`` in its function that depend on the rank, innermost first."""
    found: list[ast.If] = []
    for above in project.ancestors(call.node, call.scope):
        if isinstance(above, FunctionNode):
            break
        if isinstance(above, ast.If) and RANK.search(written(above.test)) and "world" not in written(above.test):
            found.append(above)
    return found


def _partner(project: Project, call: Call, branch: ast.If) -> bool:
    """True if the other side of ``branch`` calls the same collective."""
    mine = any(inside(project, call.node, call.scope, s) for s in branch.body)
    other = branch.orelse if mine else branch.body
    above = project.parent(branch, call.scope)
    if mine and isinstance(branch.body[-1], ast.Return) and branch in getattr(above, "body", []):
        block = getattr(above, "body", [])
        other = [*other, *block[block.index(branch) + 1 :]]  # where the ranks go on that don't return here
    return any(isinstance(n, ast.Call) and last_name(n.func) == call.name for s in other for n in ast.walk(s))


def _elsewhere(project: Project, call: Call, branch: ast.If) -> bool:
    """True if another rank-dependent branch of the function holds the same collective, as partner."""
    for node in project.within(call.scope, ast.If):
        if node is branch or inside(project, node, call.scope, branch) or inside(project, branch, call.scope, node):
            continue
        assert isinstance(node, ast.If)
        test = written(node.test)
        if (RANK.search(test) or "rank" in test) and any(
            isinstance(n, ast.Call) and last_name(n.func) == call.name for n in ast.walk(node)
        ):
            return True
    return False


def _left_before(project: Project, call: Call) -> tuple[str, int, str] | None:
    """An ``if rank != 0: return`` that stands before ``call`` in its block, without a partner in it."""
    statement = project.statement(call.node, call.scope)
    above = project.parent(statement, call.scope)
    if not isinstance(above, FunctionNode):
        return None
    for node in above.body:
        if node is statement:
            return None
        leaves = isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Return)
        if not isinstance(node, ast.If) or not leaves or not RANK.search(written(node.test)):
            continue
        partner = any(isinstance(n, ast.Call) and last_name(n.func) == call.name for n in ast.walk(node))
        if "world" not in written(node.test) and not partner:
            return call.scope.module.path, node.lineno, f"if {written(node.test)[:60]}: return"
    return None
