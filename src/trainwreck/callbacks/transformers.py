"""For the Trainer of transformers and all that is built on it (TRL): ``Trainer(..., callbacks=[Recording()])``."""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from trainwreck.record.api import Watching, log, recorder, watch


class Recording(TrainerCallback):  # type: ignore[misc]
    """Records a Trainer's run: everything ``trainwreck.watch`` records, and the values that the Trainer logs.

    ``record_to`` defaults to ``trainwreck`` in the output directory; other options as of ``trainwreck.watch``.
    """

    def __init__(self, record_to: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self._record_to = record_to
        self._options = options
        self.watching: Watching | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        """Start recording, and note what the Trainer does to its own log."""
        folder = self._record_to or os.path.join(args.output_dir or ".", "trainwreck")
        self.watching = watch(model, record_to=folder, **self._options)
        at_work = recorder()
        if at_work is not None and getattr(args, "logging_nan_inf_filter", False):
            at_work.event(
                "note",
                "logging_nan_inf_filter is on: the Trainer's log shows the running mean where the loss is not finite",
            )

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **more: Any) -> None:
        """Keep the numbers that the Trainer logs, under its own names."""
        log({k: v for k, v in (logs or {}).items() if isinstance(v, int | float)})

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """End the recording (under ``trainwreck run`` it goes on)."""
        if self.watching is not None:
            self.watching.close()
