"""For Lightning: ``Trainer(callbacks=[Recording()])``."""

from __future__ import annotations

import os
from typing import Any

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:
    from pytorch_lightning import Callback

from trainwreck.record.api import Watching, log, watch


class Recording(Callback):  # type: ignore[misc]
    """Records a Lightning run: everything ``trainwreck.watch`` records, and the metrics that ``self.log`` was given.

    ``record_to`` defaults to ``trainwreck`` in the Trainer's default root; other options as of ``trainwreck.watch``.
    """

    def __init__(self, record_to: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self._record_to = record_to
        self._options = options
        self.watching: Watching | None = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Start recording, before the sanity check of validation."""
        folder = self._record_to or os.path.join(trainer.default_root_dir or ".", "trainwreck")
        self.watching = watch(pl_module, record_to=folder, **self._options)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Keep the metrics of this step, where the Trainer would log them."""
        if trainer.log_every_n_steps and trainer.global_step % trainer.log_every_n_steps == 0:
            log(dict(trainer.logged_metrics))

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Keep the metrics of the validation."""
        if not trainer.sanity_checking:
            log(dict(trainer.callback_metrics))

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Keep the traceback: Lightning handles some of them itself."""
        if self.watching is not None:
            self.watching.failed(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """End the recording (under ``trainwreck run`` it goes on)."""
        if self.watching is not None:
            self.watching.close()
