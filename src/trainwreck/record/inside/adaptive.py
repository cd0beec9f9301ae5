"""Optimizers that divide by the size of gradients: is their epsilon so large that it does the dividing?"""

from __future__ import annotations

from typing import Any

from . import callers
from .origins import Origins
from .probe import Probe, Step
from .watched import sample_of

LOOKS = (40, 100)
"""Sampled steps at which squares of gradients have gathered: Adam's average of them spans 1,000, corrected for that."""
LEAST = 1e-7
"""Epsilon from which somebody chose it; torch's own is 1e-8."""
ABOVE = 10.0
"""Factor above the typical root of the squares at which steps are a tenth of what the learning rate says."""
NEARLY_ALL = 0.9
MOST_PARAMETERS = 24


class Adaptive(Probe):
    """Event ``live-epsilon-above-gradients``."""

    name = "adaptive steps"
    rarely = frozenset(("after_step",))

    def after_step(self, step: Step) -> None:
        """Compare epsilon with what it is added to, parameter by parameter."""
        if step.number not in LOOKS:
            return
        roots, epsilon = [], 0.0
        for group in step.optimizer.param_groups:
            mine = group.get("eps")
            if not isinstance(mine, float) or mine < LEAST:
                return
            epsilon = max(epsilon, mine)
            found = [typical(step.optimizer.state.get(p), group) for p in group["params"]]
            roots += [root for root in found if root is not None]
        roots = roots[:: len(roots) // MOST_PARAMETERS + 1]
        if len(roots) < 2 or sum(epsilon > ABOVE * root for root in roots) < NEARLY_ALL * len(roots):
            return
        text = (
            f"{type(step.optimizer).__name__}'s epsilon {epsilon:.3g} is far above the size of the gradients"
            f" ({sorted(roots)[len(roots) // 2]:.2g}): it decides how long the steps are"
        )
        origins = next((p for p in self.recorder.probes if isinstance(p, Origins)), None)
        place = origins.place(step.optimizer) if origins is not None else callers.place(callers.here())
        facts: dict[str, Any] = {"path": place[0], "line": place[1]} if place is not None else {}
        self.tell("live-epsilon-above-gradients", text, step=step.number, **facts)


def typical(state: Any, group: Any) -> float | None:
    """The median root of the averaged squares of one parameter's gradient; None where there is none on the CPU."""
    squares, betas, count = (state or {}).get("exp_avg_sq"), group.get("betas"), (state or {}).get("step")
    if squares is None or not squares.is_cpu or betas is None or count is None:
        return None
    corrected = 1.0 - float(betas[1]) ** float(count)
    root = float((sample_of(squares).float().flatten() / corrected).sqrt().median())
    return root if root > 0 else None
