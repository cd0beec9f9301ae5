"""What fake quantisation gives on is not near to what it was given.

What: a value is rounded to many levels, and the scale is not undone, undone the other way, or of another size; or the
ranges of a network that is quantised after training come from no data, or from noise.
Why it matters: the layers that follow get other numbers than the weights and activations stand for.
When it is fine: with few levels (binary, ternary, two bits), which lose much by intention.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.calibrating import calibrated_wrongly
from trainwreck.code.rehearsal.questions.fake_quantised import far_off
from trainwreck.code.rules.quantization.qat_observer_frozen import NET
from trainwreck.core.evidence import Evidence

_MOVE = "self.peak.lerp_(x.detach().abs().max(), 0.05)"
BAD = (
    NET.replace("MOVE", _MOVE).replace("BACK", "q / scale  # expect"),
    NET.replace("MOVE", _MOVE)
    .replace("x / scale), -128, 127)", "x * scale), -128, 127)")
    .replace("BACK", "q * scale  # expect"),
)
GOOD = NET.replace("MOVE", _MOVE).replace("BACK", "q * scale")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, answers(__name__, project, far_off), calibrated_wrongly)
