"""A DeepSpeed configuration in Python contradicts itself or the training arguments.

What: a dict for ``config=`` or ``deepspeed=`` with fp16 and bf16 both on, a ``train_batch_size`` that micro-batch and
accumulation can't make up, or values that differ from those of the training arguments.
Why it matters: DeepSpeed (or the Trainer) refuses to start.
When it is fine: with "auto", and where the number of processes makes the product right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from trainwreck.code.arguments import imported
from trainwreck.code.calls import Call
from trainwreck.code.facts import only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import ARGUMENTS
from trainwreck.code.values import literal, number, values
from trainwreck.core.evidence import Evidence

BAD = (
    """
import deepspeed
config = {
    "train_micro_batch_size_per_gpu": 4,
    "fp16": {"enabled": True},
    "bf16": {"enabled": True},  # expect
}
engine, *rest = deepspeed.initialize(model=model, config=config)
""",
    """
import deepspeed
engine, *rest = deepspeed.initialize(
    model=model,
    config={"train_batch_size": 100, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2},  # expect
)
""",
    """
from transformers import TrainingArguments
ZERO = {
    "train_micro_batch_size_per_gpu": 8,  # expect
    "zero_optimization": {"stage": 2},
}
args = TrainingArguments("o", per_device_train_batch_size=4, deepspeed=ZERO)
""",
)
GOOD = """
import deepspeed
from transformers import TrainingArguments
a = {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
engine, *rest = deepspeed.initialize(model=model, config=a)
b = {"fp16": {"enabled": False}, "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": "auto"}
args = TrainingArguments("o", per_device_train_batch_size=4, deepspeed=b)
c = TrainingArguments("o", deepspeed="ds.json", fp16=True)
d = TrainingArguments("o", per_device_train_batch_size=4, deepspeed={"train_micro_batch_size_per_gpu": 4})
"""
SAME: Mapping[str, tuple[str, object]] = {
    "train_micro_batch_size_per_gpu": ("per_device_train_batch_size", 8),
    "gradient_accumulation_steps": ("gradient_accumulation_steps", 1),
    "gradient_clipping": ("max_grad_norm", 1.0),
}
"""Values that the Trainer compares with its own arguments, and their defaults (its DeepSpeed integration)."""


def configurations(project: Project) -> Iterator[tuple[ast.Dict, Scope, Call]]:
    """Literal configurations with the call that gets them."""
    for call in (*project.calls("initialize"), *project.calls(*ARGUMENTS)):
        named = "deepspeed" if call.name != "initialize" else "config"
        ours = project.from_package(call, "deepspeed") or imported(project, call, "transformers")
        given = option(project, call, named) if ours else None
        found = literal(project, *given) if given is not None else None
        if found is not None and isinstance(found[0], ast.Dict):
            yield found[0], found[1], call


def entries(node: ast.Dict) -> dict[str, tuple[ast.expr, ast.expr]]:
    """Key and value nodes by the text of the key."""
    return {
        k.value: (k, v)
        for k, v in zip(node.keys, node.values, strict=True)
        if isinstance(k, ast.Constant) and isinstance(k.value, str)
    }


def find(project: Project) -> Iterator[Evidence]:
    for node, scope, call in configurations(project):
        pairs = entries(node)
        halves = [
            name for name in ("fp16", "bf16", "bfloat16") if name in pairs and _on(project, pairs[name][1], scope)
        ]
        if len(halves) > 1:
            text = "fp16 and bf16 are both enabled: DeepSpeed refuses"
            yield sighting(__name__, (pairs[halves[1]][0], scope), text, proof=[call])
        whole, micro, steps = (_number(project, pairs, scope, n) for n in _BATCH)
        if whole is not None and micro is not None and whole % (micro * (steps or 1)):
            key = pairs["train_batch_size"][0]
            text = f"train_batch_size={whole:g} is no multiple of micro-batch x accumulation = {micro * (steps or 1):g}"
            yield sighting(__name__, (key, scope), text, proof=[call])
        if call.name == "initialize":
            continue
        for name, (argument, default) in SAME.items():
            value = _number(project, pairs, scope, name)
            given = option(project, call, argument)
            own = only(project, given) if given is not None else (default if not call.open_ended else ...)
            if value is not None and isinstance(own, int | float) and value != own:
                text = f"{name}={value:g} here, and {argument}={own:g} in the training arguments: the Trainer refuses"
                yield sighting(__name__, (pairs[name][0], scope), text, proof=[call])


_BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def _number(project: Project, pairs: Mapping[str, tuple[ast.expr, ast.expr]], scope: Scope, name: str) -> float | None:
    value = number(project, pairs[name][1], scope) if name in pairs else None
    return value if value is not None and value > 0 else None


def _on(project: Project, node: ast.expr, scope: Scope) -> bool:
    found = literal(project, node, scope)
    inner = entries(found[0]).get("enabled") if found is not None and isinstance(found[0], ast.Dict) else None
    known = [k.value for k in values(project, inner[1], found[1])] if inner is not None and found is not None else []
    return known == [True]
