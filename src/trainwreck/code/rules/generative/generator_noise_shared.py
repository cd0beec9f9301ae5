"""All samples of a batch get the same noise.

What: ``torch.randn(1, d).expand(n, -1)`` (or ``repeat``) as the input of a generator.
Why it matters: the batch holds n copies of one sample; the discriminator sees no variety and the generator learns
none.
When it is fine: for showing one sample under several conditions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.feeding_noise import no_noise, one_draw_for_all, shared_noise
from trainwreck.code.rehearsal.questions.sample_ranges import one_draw
from trainwreck.code.rehearsal.questions.told_times import shared
from trainwreck.code.rule import sighting
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = """
import torch
def noise(n, d):
    return torch.randn(1, d).expand(n, -1)  # expect
"""
GOOD = """
import torch
def noise(n, d):
    one = torch.randn(n, d)
    bias = torch.zeros(1, d).expand(n, -1)
    return one + bias
"""
DRAWS = ("randn", "rand", "normal", "randint")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), shared_noise, shared, no_noise, one_draw, one_draw_for_all)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("expand", "repeat", "tile"):
        if call.receiver is None or not call.node.args:
            continue
        first = call.node.args[0]
        if isinstance(first, ast.Constant) and first.value in (1, -1):
            continue
        for node, _scope in ends(project, call.receiver, call.scope, reshapes=False):
            if isinstance(node, ast.Call) and last_name(node.func) in DRAWS and _one_row(Call(node, call.scope)):
                yield sighting(__name__, call, "one draw of noise is repeated for the whole batch")
                break


def _one_row(call: Call) -> bool:
    sizes = call.node.args[0].elts if call.node.args and isinstance(call.node.args[0], ast.Tuple) else call.node.args
    return len(sizes) == 2 and isinstance(sizes[0], ast.Constant) and sizes[0].value == 1
