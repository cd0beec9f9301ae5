"""A codebook is updated by averaging and by gradient at once.

What: ``VectorQuantize(learnable_codebook=True)`` with ``ema_update`` left on.
Why it matters: the library refuses the pair with an assertion; in own code the two updates fight.
When it is fine: with ``ema_update=False``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    complete,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.codebooks import learned_twice
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from vector_quantize_pytorch import VectorQuantize
vq = VectorQuantize(dim=64, codebook_size=512, learnable_codebook=True)  # expect
""",
    """
import vector_quantize_pytorch as v
OPTIONS = dict(dim=8, codebook_size=16, learnable_codebook=True, ema_update=True)
vq = v.VectorQuantize(**OPTIONS)  # expect
""",
)
GOOD = """
from vector_quantize_pytorch import VectorQuantize
a = VectorQuantize(dim=64, codebook_size=512, learnable_codebook=True, ema_update=False)
b = VectorQuantize(dim=64, codebook_size=512)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _of_library(project), learned_twice)


def _of_library(project: Project) -> Iterator[Evidence]:
    for call in project.calls("VectorQuantize"):
        if not project.called(call).startswith("vector_quantize_pytorch") or not complete(project, call):
            continue
        update = option(project, call, "ema_update")
        if only(project, option(project, call, "learnable_codebook")) is True and (
            update is None or only(project, update) is True
        ):
            yield sighting(__name__, call, "a learnable codebook needs ema_update=False")
