"""Frozen and trainable parameters share one flat parameter of FSDP.

What: ``FullyShardedDataParallel(model)`` without ``use_orig_params=True`` and without a wrapping policy, for a model
of which a part is frozen (``requires_grad = False``, or adapters of PEFT).
Why it matters: FSDP flattens a unit into one tensor that can have one ``requires_grad`` only: construction raises.
When it is fine: with ``use_orig_params=True``, with units that are frozen as a whole, or with ``fully_shard``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.aliases import calls_to
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import complete, made, only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

WORDS = ("FullyShardedDataParallel",)
BAD = (
    """
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
def main(model):
    for p in model.encoder.parameters():
        p.requires_grad = False
    model = FSDP(model)  # expect
""",
    """
from torch.distributed.fsdp import FullyShardedDataParallel
from peft import get_peft_model
def main(base, config):
    net = get_peft_model(base, config)
    return FullyShardedDataParallel(net, device_id=0)  # expect
""",
    """
import torch.distributed.fsdp as fsdp
def main(net):
    net.backbone.requires_grad_(False)
    sharded = fsdp.FullyShardedDataParallel(net, use_orig_params=False)  # expect
""",
)
GOOD = """
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
def a(model):
    for p in model.encoder.parameters():
        p.requires_grad = False
    return FSDP(model, use_orig_params=True)
def b(model, teacher):
    teacher.requires_grad_(False)
    return FSDP(model)
def c(model, policy):
    model.encoder.requires_grad_(False)
    return FSDP(model, auto_wrap_policy=policy)
def d(model):
    for p in model.parameters():
        p.requires_grad = False
    return FSDP(model)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in calls_to(project, "torch", "FullyShardedDataParallel"):
        if not call.node.args:
            continue
        if not complete(project, call) or only(project, option(project, call, "use_orig_params")) not in (None, False):
            continue
        if any(option(project, call, n) is not None for n in ("auto_wrap_policy", "ignored_modules", "ignored_states")):
            continue
        place = _frozen(project, call.node.args[0], call)
        if place is not None:
            text = "a part of this model is frozen, and all of it becomes one flat parameter here"
            yield sighting(__name__, call, text, proof=[place])


def _frozen(project: Project, model: ast.expr, call: Call) -> tuple[str, int, str] | None:
    """Where a part (not the whole) of the model stops to be trained."""
    scope, name = call.scope, written(model)
    for maker in made(project, model, scope):
        if maker.name == "get_peft_model":
            return scope.module.path, maker.line, written(maker.node)[:80]
    part = re.compile(rf"^{re.escape(name)}\.\w+")
    for node in project.within(scope, ast.For, ast.Call):
        if isinstance(node, ast.For):
            if part.match(written(node.iter)) and not _whole(node.iter, name) and _freezes(node):
                return _at(scope, node)
        elif isinstance(node, ast.Call) and last_name(node.func) == "requires_grad_" and node.args:
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if owner is not None and part.match(written(owner)) and written(node.args[0]) == "False":
                return _at(scope, node)
    return None


def _whole(node: ast.expr, name: str) -> bool:
    return written(node) in (f"{name}.parameters()", f"{name}.named_parameters()")


def _freezes(loop: ast.For) -> bool:
    return any(
        isinstance(n, ast.Assign) and written(n.targets[0]).endswith(".requires_grad") and written(n.value) == "False"
        for n in ast.walk(loop)
    )


def _at(scope: Scope, node: ast.For | ast.Call) -> tuple[str, int, str]:
    return scope.module.path, node.lineno, written(node).split("\n")[0][:80]
