"""The recorder for JAX: ``step = trainwreck.jax.watch(step)`` around a train step.

step = trainwreck.jax.watch(train_step)
for batch in batches:
    state, loss = step(state, batch)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainwreck.record.jaxside.watch import Watched


def watch(
    step: Callable[..., Any], *, record_to: str | None = None, gradients: Callable[..., Any] | None = None
) -> Watched:
    """``step``, observed: same arguments, same results, bit for bit.

    Recorded at each call: scalar results (the one called a loss is the loss), the norm of the weights by pytree path
    and of gradients where ``step`` returns them; at steps 1 to 5 and every 20th the size of the update.
    ``gradients(*arguments)`` gives gradients of a step that does not return them; it runs at those sampled steps only.
    ``record_to`` is the folder of the recording (default ``.trainwreck/runs/…``); ``trainwreck diagnose`` reads it, and
    ``.diagnose()`` does so at once. A non-finite result is run again primitive by primitive to find where it was born.
    """
    from trainwreck.record.jaxside.watch import Watched

    folder = record_to or os.path.join(".trainwreck", "runs", f"{time.strftime('%Y%m%d-%H%M%S')}-jax-{os.getpid()}")
    return Watched(step, folder, gradients)
