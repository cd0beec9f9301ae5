"""The batch of GRPO can't be cut into whole groups.

What: per-device batch times accumulation (times processes) is no multiple of ``num_generations``.
Why it matters: the arguments class raises a ValueError.
When it is fine: where more processes make it a multiple; then the sentence says how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from trainwreck.code.arguments import attributes_set, imported
from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, only, option
from trainwreck.code.huggingface import release
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix

BAD = (
    """
from trl import GRPOConfig
args = GRPOConfig(
    output_dir="o",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=1,
    num_generations=6,  # expect
)
""",
    """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", generation_batch_size=30, num_generations=8)  # expect
""",
    """
from trl import GRPOConfig
BATCH = 3
options = dict(per_device_train_batch_size=BATCH, gradient_accumulation_steps=2)
args = GRPOConfig(output_dir="o", **options)  # expect
""",
)
GOOD = """
from trl import GRPOConfig
one = GRPOConfig(output_dir="o", per_device_train_batch_size=8, num_generations=8)
two = GRPOConfig(output_dir="o", per_device_train_batch_size=1, gradient_accumulation_steps=8)
three = GRPOConfig(output_dir="o", per_device_train_batch_size=size, num_generations=6)
four = GRPOConfig(output_dir="o", generation_batch_size=32, num_generations=8)
five = GRPOConfig(output_dir="o", per_device_train_batch_size=2, steps_per_generation=4, num_generations=8)
six = GRPOConfig(output_dir="o", num_generations=4, **more)
"""
SINCE = (0, 18)
"""From here on the batch of ``gradient_accumulation_steps`` micro-batches is what is cut (0.16 cut one micro-batch)."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("GRPOConfig"):
        if not imported(project, call, "transformers") or not complete(project, call):
            continue
        found = _batch(project, call)
        group = _number(project, call, "num_generations", 8)
        if found is None or group is None or group < 2 or found[0] % group == 0:
            continue
        batch, how = found
        fixed = option(project, call, "generation_batch_size") is not None
        times = group // gcd(batch, group)
        text = f"{how} = {batch} is no multiple of num_generations={group}"
        if not fixed:
            text += f"; it needs a multiple of {times} processes"
        severity: Severity = "critical" if fixed or times > 8 or times not in (2, 4, 8) else "warning"
        place = keyword_place(call, "num_generations") or call
        yield sighting(
            __name__, place, text, fix=Fix("make the batch a multiple of num_generations"), severity=severity
        )


def _batch(project: Project, call: Call) -> tuple[int, str] | None:
    """What is cut into groups on one process, and how it comes about; None where a part is unknown."""
    if option(project, call, "generation_batch_size") is not None:
        whole = _number(project, call, "generation_batch_size", None)
        return (whole, "generation_batch_size") if whole is not None else None
    size = _number(project, call, "per_device_train_batch_size", 8)
    if size is None:
        return None
    if release(project, "trl", call.scope.module.path, SINCE) == "no":
        return size, "per_device_train_batch_size"
    name = "steps_per_generation" if option(project, call, "steps_per_generation") else "gradient_accumulation_steps"
    steps = _number(project, call, name, 1)
    return (size * steps, f"per_device_train_batch_size x {name}") if steps is not None else None


def _number(project: Project, call: Call, name: str, default: int | None) -> int | None:
    given = option(project, call, name)
    if name in attributes_set(project):
        return None
    value = only(project, given) if given is not None else default
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
