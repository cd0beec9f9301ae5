"""For accelerate: ``Accelerator(log_with=[Recording()])``; ``accelerator.init_trackers(…)`` starts it."""

from __future__ import annotations

import os
from typing import Any

from accelerate.tracking import GeneralTracker, on_main_process

from trainwreck.record.api import Watching, log, watch


class Recording(GeneralTracker):  # type: ignore[misc]
    """A tracker that records the whole training, and keeps what ``accelerator.log`` is given.

    Options as of ``trainwreck.watch``.
    """

    name = "trainwreck"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, record_to: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__()
        self.watching: Watching = watch(record_to=record_to, **options)

    @property
    def tracker(self) -> Watching:
        """The recording under way."""
        return self.watching

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """The configuration is in the program and its files already."""

    @on_main_process  # type: ignore[untyped-decorator]
    def log(self, values: dict[str, Any], step: int | None = None, **more: Any) -> None:
        """Keep the numbers among ``values``."""
        log({k: v for k, v in values.items() if isinstance(v, int | float)})

    def finish(self) -> None:
        """End the recording (under ``trainwreck run`` it goes on)."""
        self.watching.close()
