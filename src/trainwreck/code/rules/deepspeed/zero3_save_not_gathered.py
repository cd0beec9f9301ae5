"""The weights of ZeRO-3 are saved from one rank.

What: ``torch.save(model.state_dict())`` with a configuration of stage 3 and nothing that gathers the shards.
Why it matters: each rank holds a shard: the file has empty tensors.
When it is fine: with ``save_checkpoint``, ``save_16bit_model``, or within ``GatheredParameters``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import text_of
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.rules.deepspeed.deepspeed_config_mismatch import configurations, entries
from trainwreck.code.rules.deepspeed.deepspeed_plain_backward import engines
from trainwreck.code.scopes import Scope
from trainwreck.code.values import literal, number
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
import deepspeed
import torch
CONFIG = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}
def main(model):
    engine, *rest = deepspeed.initialize(model=model, config=CONFIG)
    train(engine)
    torch.save(engine.module.state_dict(), "model.pt")  # expect
""",
)
GOOD = (
    """
import deepspeed
import torch
CONFIG = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}
def main(model):
    engine, *rest = deepspeed.initialize(model=model, config=CONFIG)
    torch.save(engine.module.state_dict(), "model.pt")
""",
    """
import deepspeed
CONFIG = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}
def main(model):
    engine, *rest = deepspeed.initialize(model=model, config=CONFIG)
    engine.save_16bit_model("out")
""",
)
GATHERS = ("GatheredParameters", "consolidated", "get_state_dict", "zero_to_fp32", "gather_16bit", "save_16bit")


def find(project: Project) -> Iterator[Evidence]:
    if any(word in walked.top.module.text for walked in project.walked.values() for word in GATHERS):
        return
    staged = [call for node, scope, call in configurations(project) if _stage(project, node, scope) == 3]
    for made, names in engines(project):
        if made.node not in [c.node for c in staged] or not names:
            continue
        model = made.argument("model", 1)
        held = {names[0], f"{names[0]}.module", written(model) if model is not None else ""}
        for call in project.calls("state_dict"):
            above = project.parent(call.node, call.scope)
            saved = isinstance(above, ast.Call) and last_name(above.func) == "save"
            if saved and call.scope is made.scope and written(call.receiver) in held and text_of(project, call.scope):
                text = "under ZeRO-3 each rank holds a shard: this file gets empty tensors"
                yield sighting(__name__, call, text, proof=[made], fix=Fix(f"{names[0]}.save_16bit_model(...)"))


def _stage(project: Project, node: ast.Dict, scope: Scope) -> float | None:
    zero = entries(node).get("zero_optimization")
    found = literal(project, zero[1], scope) if zero is not None else None
    if found is None or not isinstance(found[0], ast.Dict):
        return None
    stage = entries(found[0]).get("stage")
    return number(project, stage[1], found[1]) if stage is not None else None
