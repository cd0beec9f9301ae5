"""Watch a JAX train step from outside: losses, weights, updates and gradients by pytree path, and the origin of a NaN.

The step's function is called as it is; what is recorded is computed from its arguments and results by small programs of
our own that are dispatched and not waited for. On an accelerator nothing is read outside a flush; on the CPU the loss
is looked at every step.
"""

from __future__ import annotations

import atexit
import importlib
import json
import math
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainwreck.record.inside.store import Store
from trainwreck.record.jaxside.norms import Groups
from trainwreck.record.jaxside.replay import replay

FLUSH_STEPS = 20
"""Steps between two flushes, which also is how many batches are held for a replay."""
EARLY_STEPS, SAMPLE_STEPS = 5, 20
"""Steps 1 to 5 and every 20th are sampled: norms of updates and of gradients that the step does not return."""
NOT_WEIGHTS = ("opt_state", "batch_stats", "mu", "nu", "trace", "step", "count", "rng")
"""Parts of a train state that are no weights, by the names that flax and optax give them."""


class Watched:
    """A train step under observation; call it as the step itself. Made by ``watch``."""

    def __init__(
        self,
        step: Callable[..., Any],
        folder: str,
        gradients: Callable[..., Any] | None,
    ) -> None:
        self._jax: Any = importlib.import_module("jax")
        self.__wrapped__ = step
        self.folder = folder
        self._gradients = gradients
        self._store = Store(folder, {"jax": str(self._jax.__version__), "argv": sys.argv})
        self._on_cpu = self._jax.default_backend() == "cpu"
        self._number = 0
        self._rows: list[tuple[dict[str, Any], list[tuple[Any, list[str]]]]] = []
        self._since: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self._snapshot: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        self._layout: _Layout | None = None
        self._donated = False
        self._told = False
        self._faults = 0
        self._last = time.perf_counter()
        atexit.register(self.close)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """The step's own result; what it raises is passed on, with its traceback kept beside the recording."""
        before = self._contained(self._before, arguments, options)
        try:
            result = self.__wrapped__(*arguments, **options)
        except BaseException as problem:
            self._contained(self._raised, problem)
            raise
        self._contained(self._after, arguments, options, result, before)
        return result

    def flush(self) -> None:
        """Read what is unread and write it."""
        self._contained(self._flush)

    def close(self) -> None:
        """Write what is left; called at exit as well."""
        if self._faults >= 0:
            self.flush()
            self._contained(self._ended)
            self._store.close()
        self._faults = -1

    def diagnose(self) -> Any:
        """The diagnosis of what was recorded so far (a ``Result``)."""
        from trainwreck.engine import diagnose

        self.flush()
        script = Path(sys.argv[0])
        return diagnose([Path(self.folder)], code=[str(script)] if script.suffix == ".py" and script.is_file() else [])

    # the moments

    def _before(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What is needed of the arguments while they live: a snapshot at a flush, old weights at a sampled step."""
        self._number += 1
        if self._snapshot is None:
            self._snapshot = (self._kept(arguments), options)
        self._since.append((arguments, options))
        if self._layout is None or not self._layout.state or not self._sampled():
            return None
        weights = self._layout.weights(arguments)
        gradients = self._gradients(*arguments, **options) if self._gradients is not None else None
        return (self._jax.tree.map(_copy, weights) if self._donated else weights), gradients

    def _after(self, arguments: tuple[Any, ...], options: dict[str, Any], result: Any, before: Any) -> None:
        if self._layout is None:
            self._layout = _Layout(arguments, result)
            self._donated = any(
                getattr(x, "is_deleted", lambda: False)() for x in self._jax.tree.leaves((arguments, options))
            )
            if self._donated:
                # The first arguments are gone; a replay starts from the results, which are the next arguments.
                self._snapshot = None
        layout = self._layout
        row: dict[str, Any] = {"step": self._number}
        vectors: list[tuple[Any, list[str]]] = []
        for name, value in layout.scalars(result).items():
            row[name] = value
        now = time.perf_counter()
        row["seconds"], self._last = round(now - self._last, 6), now
        if layout.state:
            weights = layout.new_weights(result)
            vectors.append((layout.groups.norms(weights), [f"weight_norm/{n}" for n in layout.groups.names]))
            returned = layout.returned_gradients(result)
            if before is not None:
                old, gradients = before
                returned = gradients if gradients is not None and layout.groups.fits(gradients) else returned
                vectors.append(
                    (layout.groups.differences(weights, old), [f"update_norm/{n}" for n in layout.groups.names])
                )
            if returned is not None:
                vectors.append((layout.groups.norms(returned), [f"grad_norm/{n}" for n in layout.groups.names]))
        self._rows.append((row, vectors))
        self._forget_donated()
        loss = row.get("loss")
        broken = self._on_cpu and loss is not None and not math.isfinite(float(loss))
        if len(self._rows) >= FLUSH_STEPS or (broken and not self._told):
            self._flush()

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        onset = None
        for row, vectors in rows:
            plain = {name: float(value) for name, value in row.items()}
            for vector, names in vectors:
                plain.update(zip(names, map(float, vector), strict=True))
            norms = [v for k, v in plain.items() if k.startswith("grad_norm/")]
            if norms:
                plain["grad_norm"] = math.sqrt(sum(v * v for v in norms))
            for name in [k for k in plain if k.startswith("update_norm/")]:
                module, moved = name.partition("/")[2], plain.pop(name)
                size = plain.get(f"weight_norm/{module}", 0.0)
                plain[f"update_ratio/{module}"] = moved / size if size else 0.0
            if onset is None and any(not math.isfinite(v) for v in plain.values()):
                onset = (int(plain["step"]), plain)
            self._store.row("steps", plain)
        self._store.flush()
        if onset is not None and not self._told:
            self._told = True
            self._alarm(*onset)
        self._since, self._snapshot = [], None

    def _alarm(self, step: int, row: dict[str, float]) -> None:
        """The first non-finite value: say so, and run its step again from the last snapshot."""
        names = [k for k, v in row.items() if not math.isfinite(v)]
        what = "loss" if "loss" in names else names[0]
        kind = "nonfinite-loss" if what == "loss" else "nonfinite-weights"
        text = f"{what} is not finite at step {step}"
        self._store.event(f"alarm-{kind}", text, step, level="critical", value=str(row[what]))
        print(f"trainwreck: {text}", file=sys.stderr)
        origin = self._origin(step)
        if origin is not None:
            folder = os.path.join(self.folder, f"capture-{step}")
            os.makedirs(folder, exist_ok=True)
            told = {"trainwreck_origin": 1, "alarm": kind, "step": step, **origin}
            with open(os.path.join(folder, "origin.json"), "w", encoding="utf-8") as file:
                json.dump(_plain(told), file, indent=1)
            print(f"trainwreck: {origin['text']}", file=sys.stderr)

    def _origin(self, step: int) -> dict[str, Any] | None:
        """Go forward from the snapshot to ``step`` and run that one primitive by primitive."""
        if self._snapshot is None or self._layout is None or not self._since:
            return None
        state = self._snapshot[0]
        first = self._number - len(self._since) + 1
        for number, (arguments, options) in enumerate(self._since, first):
            filled = self._layout.with_state(arguments, state)
            if number == step:
                return replay(self.__wrapped__, self._kept(filled), options)
            state = self._layout.next_arguments(filled, self.__wrapped__(*self._kept(filled), **options))
        return None

    def _kept(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments that outlive the call: themselves, or copies where the step takes its arguments' memory."""
        if self._layout is not None and not self._donated:
            return arguments
        return tuple(self._jax.tree.map(_copy, a) for a in arguments)

    def _forget_donated(self) -> None:
        """Hold only the batch of a step, not its state: the state is made again from the snapshot."""
        if self._layout is not None and self._since:
            arguments, options = self._since[-1]
            self._since[-1] = (self._layout.without_state(arguments), options)

    def _raised(self, problem: BaseException) -> None:
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, "traceback-rank0.txt"), "w", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(problem))
        self._flush()

    def _ended(self) -> None:
        if self._number:
            self._store.event("ended", "the process ended by itself", self._number)

    def _sampled(self) -> bool:
        return self._number <= EARLY_STEPS or self._number % SAMPLE_STEPS == 0

    def _contained(self, part: Callable[..., Any], *arguments: Any) -> Any:
        """``part``, with every fault of ours noted and kept from the training; after three nothing more is recorded."""
        if not 0 <= self._faults < 3:
            return None
        try:
            return part(*arguments)
        except Exception as problem:
            self._faults += 1
            print(f"trainwreck: recording fault ({type(problem).__name__}: {problem})", file=sys.stderr)
            return None


class _Layout:
    """Which arguments are the state that a step passes on, where the results hold it, and which results are scalars."""

    def __init__(self, arguments: tuple[Any, ...], result: Any) -> None:
        self._jax: Any = importlib.import_module("jax")
        self.parts = list(result) if type(result) in (tuple, list) else [result]
        self._single = type(result) not in (tuple, list)
        shapes = [self._shape(a) for a in arguments]
        outs = [self._shape(r) for r in self.parts]
        self.state: dict[int, int] = {}
        """Argument number to result number."""
        for i, shape in enumerate(shapes):
            match = next((j for j, s in enumerate(outs) if s == shape and j not in self.state.values()), None)
            if match is not None and self._arrays(arguments[i]):
                self.state[i] = match
        self._weights_argument = min(self.state, default=0)
        self._gradient_result: int | None = None
        if self.state:
            weights = self.weights(arguments)
            self.groups = Groups(weights)
            rest = [j for j in range(len(outs)) if j not in self.state.values()]
            wanted = self._shape(weights)
            self._gradient_result = next((j for j in rest if outs[j] == wanted), None)
        self._scalar_names = self._find_scalars(self.parts)

    def _shape(self, tree: Any) -> Any:
        leaves, structure = self._jax.tree.flatten(tree)
        return structure, tuple((getattr(x, "shape", None), str(getattr(x, "dtype", ""))) for x in leaves)

    def _arrays(self, tree: Any) -> bool:
        """True for something that can be a state: it holds an array of some size."""
        return any(getattr(x, "ndim", 0) > 0 for x in self._jax.tree.leaves(tree))

    def weights(self, arguments: tuple[Any, ...]) -> Any:
        """The weights among the arguments: ``params`` of a train state, else the first state without bookkeeping."""
        return _params(arguments[self._weights_argument])

    def new_weights(self, result: Any) -> Any:
        return _params(self._parts(result)[self.state[self._weights_argument]])

    def returned_gradients(self, result: Any) -> Any:
        return None if self._gradient_result is None else self._parts(result)[self._gradient_result]

    def with_state(self, arguments: tuple[Any, ...], state: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(state[i] if i in self.state else a for i, a in enumerate(arguments))

    def without_state(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if i in self.state else a for i, a in enumerate(arguments))

    def next_arguments(self, arguments: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
        parts = self._parts(result)
        return tuple(parts[self.state[i]] if i in self.state else a for i, a in enumerate(arguments))

    def scalars(self, result: Any) -> dict[str, Any]:
        """Scalar results by name; the first that is called a loss, or else the first of all, is ``loss``."""
        parts = self._parts(result)
        found = {}
        for name, (part, index) in self._scalar_names.items():
            found[name] = self._jax.tree.leaves(parts[part])[index]
        return found

    def _parts(self, result: Any) -> list[Any]:
        return [result] if self._single else list(result)

    def _find_scalars(self, parts: list[Any]) -> dict[str, tuple[int, int]]:
        jnp, util = self._jax.numpy, self._jax.tree_util
        found: dict[str, tuple[int, int]] = {}
        for number, part in enumerate(parts):
            if number in self.state.values() or number == self._gradient_result:
                continue
            for index, (path, leaf) in enumerate(util.tree_flatten_with_path(part)[0]):
                if getattr(leaf, "shape", None) == () and jnp.issubdtype(leaf.dtype, jnp.floating):
                    words = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k)))) for k in path]
                    found.setdefault("/".join(words) or f"output{number}", (number, index))
        if found and "loss" not in found:
            chosen = next((n for n in found if "loss" in n.lower()), next(iter(found)))
            found = {("loss" if n == chosen else n): place for n, place in found.items()}
        return found


def _params(state: Any) -> Any:
    """The weights within a state: its ``params``, or the state itself."""
    if isinstance(state, dict) and "params" in state and any(k in state for k in NOT_WEIGHTS):
        return state["params"]
    return getattr(state, "params", state)


def _copy(leaf: Any) -> Any:
    return leaf.copy() if hasattr(leaf, "copy") and hasattr(leaf, "dtype") else leaf


def _plain(value: Any) -> Any:
    """JSON without NaN: non-finite numbers become words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value
