"""The start method of processes is set when it is too late.

What: ``set_start_method`` without ``force=True`` is called a second time, or after a queue, pool, manager, event or
process was made in the same block.
Why it matters: it raises "context has already been set", or what was made before keeps the old method.
When it is fine: as the first statement of the main block, or with ``force=True``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import later, only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.multiprocessing as mp
def main():
    queue = mp.Queue()
    mp.set_start_method("spawn")  # expect
    mp.Process(target=print, args=(queue,)).start()
""",
    """
import multiprocessing
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    load()
    multiprocessing.set_start_method("spawn")  # expect
""",
    """
import torch
pool = torch.multiprocessing.Pool(4)
torch.multiprocessing.set_start_method("spawn")  # expect
""",
)
GOOD = """
import torch.multiprocessing as mp
import queue
def main():
    mp.set_start_method("spawn", force=True)
    q = mp.Queue()
def second():
    mp.set_start_method("spawn")
    p = mp.Pool(2)
def third(fast):
    plain = queue.Queue()
    if fast:
        mp.set_start_method("fork")
    else:
        mp.set_start_method("spawn")
def fourth():
    ctx = mp.get_context("spawn")
    q = ctx.Queue()
    try:
        mp.set_start_method("spawn")
    except RuntimeError:
        pass
"""
FIXES = ("Queue", "Pool", "Manager", "Process", "Event", "Lock", "Value", "Array", "SimpleQueue", "spawn", "Barrier")
PACKAGES = ("multiprocessing.", "torch.multiprocessing.")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("set_start_method"):
        if (
            not project.called(call).startswith(PACKAGES)
            or only(project, option(project, call, "force", 1)) is not None
        ):
            continue
        if any(isinstance(a, ast.Try) for a in project.ancestors(call.node, call.scope)):
            continue
        block = _block(project, call)
        for other in project.calls(*FIXES, "set_start_method"):
            if other.scope is not call.scope or other.node is call.node or not later(call.node, other.node):
                continue
            if _block(project, other) is block and project.called(other).startswith(PACKAGES):
                yield sighting(__name__, call, "the start method is in use already", proof=[other])
                break


def _block(project: Project, call: Call) -> list[ast.stmt] | None:
    """The list of statements that ``call`` stands in."""
    statement = project.statement(call.node, call.scope)
    above = project.parent(statement, call.scope)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, None)
        if isinstance(block, list) and any(s is statement for s in block):
            return block
    return None
