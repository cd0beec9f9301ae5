"""Run a piece of a training step op by op and follow every non-finite value from where it is born to the loss.

A dispatch mode sees each op below autograd, forward and backward; a function mode gives the name that the user wrote.
An op whose result holds NaN or infinity becomes an event; its parents are the events of its non-finite inputs. Births
are events without parents. Infinities that are put in on purpose (masks) and swallowed again reach nothing.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from . import rows, tensors
from .events import Event, Frame, Origin, trace_back
from .producers import Producers

MAX_EVENTS = 100_000
"""Non-finite results that are followed; a step with more is told by its first ones."""
MAX_FRAMES = 12
"""User frames kept with one event, innermost first."""
ON_PURPOSE = ("full", "fill", "masked_fill", "scalar_tensor", "lift_fresh", "zero", "constant_pad_nd", "index_put")
"""Ops that put a given value in; what they write is the program's will, what becomes of it may not be."""
OVERWRITE = ("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "set_")
"""In-place ops whose result does not depend on what was there."""
HERE = os.path.dirname(os.path.abspath(__file__))


class Tracer:
    """Holds the events of one replay; used as a context manager around the code that is traced."""

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names
        self.phase = "forward"
        self.events: list[Event] = []
        self.calls: list[str] = []
        self.modules: list[tuple[int, str]] = []
        self.nodes: list[tuple[int, str | None, str | None]] = []
        self.ops = 0
        self.producers = Producers()
        self.seen_nodes: set[str] = set()
        self._by_tensor: dict[int, Event] = {}
        self._by_storage: dict[int, Event] = {}
        self._kept: list[Any] = []
        self._libraries: dict[str, bool] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[Tracer]:
        """Trace everything that runs inside."""
        before = torch.nn.modules.module.register_module_forward_pre_hook(self._enter)
        after = torch.nn.modules.module.register_module_forward_hook(self._leave, always_call=True)
        try:
            with (
                torch.autograd.set_detect_anomaly(True, check_nan=False),
                _Functions(self),
                _Ops(self),
            ):
                yield self
        finally:
            before.remove()
            after.remove()

    def _enter(self, module: Any, inputs: Any) -> None:
        self._mark()
        self.modules.append((id(module), self.names.get(id(module), type(module).__name__)))

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:
        self._mark()
        while self.modules:
            if self.modules.pop()[0] == id(module):
                break

    def module(self) -> str | None:
        """Path of the innermost module that is running."""
        return self.modules[-1][1] if self.modules else None

    def _mark(self) -> None:
        """Note that graph nodes made up to now belong to the module and function that run now."""
        self.nodes.append((torch.autograd._get_sequence_nr(), self.module(), self.calls[-1] if self.calls else None))

    def of_node(self, sequence: int) -> tuple[str | None, str | None]:
        """Module and user-level function during which the graph node with this sequence number was made."""
        at = bisect.bisect_right(self.nodes, sequence, key=lambda entry: entry[0])
        return self.nodes[at][1:] if at < len(self.nodes) else (None, None)

    # Ops

    def before(self, func: Any, args: Any, kwargs: Any) -> list[dict[str, Any]] | None:
        """Ranges of the inputs of an op that will overwrite one of them."""
        return self._inputs(func, args, kwargs) if func._schema.is_mutable else None

    def after(self, func: Any, args: Any, kwargs: Any, result: Any, before: list[dict[str, Any]] | None) -> None:
        """Look at the result of an op; make an event of it if it is not finite."""
        self.ops += 1
        if self.phase == "backward" and (node := torch._C._current_autograd_node()) is not None:
            self.seen_nodes.add(str(node.name()))
        made = [t for t in tensors.inside(result) if tensors.nonfinite(t)]
        if not made or len(self.events) >= MAX_EVENTS:
            return
        packet = func.overloadpacket.__name__
        given = list(tensors.inside((args, kwargs)))
        storages = {_storage(t) for t in given}
        if before is None and all(_storage(t) in storages for t in made):
            return  # A view: the event of its storage stands for it.
        target = id(args[0]) if before is not None and args and isinstance(args[0], torch.Tensor) else None
        overwrites = packet in OVERWRITE
        parents: list[Event] = []
        outside: list[Any] = []
        bad_before = [bool(f.get("nan") or f.get("inf")) for f in before] if before is not None else None
        for at, tensor in enumerate(given):
            if bad_before is not None and id(tensor) == target:
                if overwrites or at >= len(bad_before) or not bad_before[at]:
                    continue
            elif not tensors.nonfinite(tensor):
                continue
            event = self.event_of(tensor)
            if event is None:
                outside.append(tensor)
            elif event not in parents:
                parents.append(event)
        event = self._event(func, packet, args, kwargs, made, before, parents, outside)
        self.events.append(event)
        for tensor in made:
            self._by_tensor[id(tensor)] = event
            self._by_storage[_storage(tensor)] = event
            self._kept.append(tensor)

    def event_of(self, tensor: Any) -> Event | None:
        """The latest event that made the values of ``tensor``."""
        found = [e for e in (self._by_tensor.get(id(tensor)), self._by_storage.get(_storage(tensor))) if e is not None]
        return max(found, key=lambda e: e.number) if found else None

    def _event(
        self,
        func: Any,
        packet: str,
        args: Any,
        kwargs: Any,
        made: list[Any],
        before: list[dict[str, Any]] | None,
        parents: list[Event],
        outside: list[Any],
    ) -> Event:
        first = made[0]
        nan = any(bool(torch.isnan(t).any()) for t in made)
        detailed = not parents or (nan and not any(p.nan for p in parents))
        inputs = (before if before is not None else self._inputs(func, args, kwargs)) if detailed else []
        output = tensors.ranges(first) if detailed else {}
        if detailed:
            output |= _example(args, first) if before is None else {}
            output |= {"rows": rows.failing(first)}
        frames, node, module, call = self._place() if detailed else ([], None, None, None)
        return Event(
            len(self.events),
            packet,
            call,
            self.phase,
            nan,
            any(bool(torch.isinf(t).any()) for t in made),
            module,
            frames,
            inputs,
            output,
            packet.rstrip("_") in ON_PURPOSE and not parents and not outside,
            node,
            list(self.calls),
            parents,
            outside,
        )

    def _inputs(self, func: Any, args: Any, kwargs: Any) -> list[dict[str, Any]]:
        """Ranges of tensors and values of numbers that go into an op, under the names of its schema."""
        found = []
        names = [a.name for a in func._schema.arguments]
        given = [*zip(names, args, strict=False), *kwargs.items()]
        for name, value in given:
            if isinstance(value, torch.Tensor):
                found.append({"name": name, **tensors.ranges(value)} | self._source(value))
            elif isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
                found += [
                    {"name": f"{name}[{i}]", **tensors.ranges(v)}
                    for i, v in enumerate(value[:32])
                    if isinstance(v, torch.Tensor)
                ]
            elif isinstance(value, (int, float, bool, str, list, tuple, torch.dtype)):
                found.append({"name": name, "value": tensors.plain(value)})
        return found

    def _source(self, tensor: Any) -> dict[str, Any]:
        made = self.producers.of(tensor)
        if made is None:
            return {}
        path, line = made.place or (None, None)
        return {"from": {"call": made.call, "module": made.module, "path": path, "line": line}}

    # Places

    def _place(self) -> tuple[list[Frame], str | None, str | None, str | None]:
        """User frames, graph node, module and function of the op that is running."""
        node = torch._C._current_autograd_node() if self.phase == "backward" else None
        frames = self.stack(sys._getframe(2), stop_at_us=node is not None)
        if node is None:
            return frames, None, self.module(), self.calls[0] if self.calls else None
        module, call = self.of_node(node._sequence_nr())
        written = node.metadata.get("traceback_") or []
        return frames or self._written(written), str(node.name()), module or self.module(), call

    def stack(self, frame: Any, stop_at_us: bool = False, most: int = MAX_FRAMES) -> list[Frame]:
        """Frames outside torch and outside us, innermost first. ``stop_at_us``: only those below the replay itself."""
        found: list[Frame] = []
        inside = True
        while frame is not None and len(found) < most:
            path = frame.f_code.co_filename
            ours = os.path.dirname(os.path.abspath(path)) == HERE
            if ours and not inside and (stop_at_us or any("-packages" not in f.path for f in found)):
                break  # Below us stands the backward that was interrupted; it explains nothing more.
            inside = inside and ours
            if not self._hidden(path):
                found.append(Frame(path, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back
        return found

    def _hidden(self, path: str) -> bool:
        """Frames that never name a place: torch, Python itself, and us."""
        if path not in self._libraries:
            real = os.path.realpath(path)
            torch_ = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
            standard = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
            self._libraries[path] = (
                real.startswith((torch_, HERE + os.sep))
                or (real.startswith(standard) and "site-packages" not in real and "dist-packages" not in real)
                or path.startswith("<frozen")
            )
        return self._libraries[path]

    def _written(self, lines: list[str]) -> list[Frame]:
        """Frames of a traceback in text, as anomaly mode keeps it: innermost first."""
        found: list[Frame] = []
        for entry in reversed(lines):
            head = entry.strip().split("\n")[0]
            path, _, rest = head.removeprefix('File "').partition('", line ')
            number, _, function = rest.partition(", in ")
            if number.isdigit() and not self._hidden(path) and len(found) < MAX_FRAMES:
                found.append(Frame(path, int(number), function.strip()))
        return found

    # The way back

    def origin(self, tensor: Any) -> Origin | None:
        """Where the non-finite values of ``tensor`` were born, None if it is finite."""
        if not tensors.nonfinite(tensor):
            return None
        last = self.event_of(tensor)
        return Origin(outside=[tensor]) if last is None else trace_back([last])


class _Ops(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():
            before = self.tracer.before(func, args, kwargs)
        result = func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            self.tracer.after(func, args, kwargs, result, before)
        return result


class _Functions(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "") or str(func)
        if name == "__get__":
            return func(*args, **(kwargs or {}))
        self.tracer._mark()
        name = name.strip("_") if name.startswith("__") else name
        self.tracer.calls.append(name)
        try:
            result = func(*args, **(kwargs or {}))
            frames = self.tracer.stack(sys._getframe(1), most=1)
            place = (frames[0].path, frames[0].line) if frames else None
            self.tracer.producers.note(name, args, result, self.tracer.module(), place)
            return result
        finally:
            self.tracer._mark()
            self.tracer.calls.pop()


def _storage(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except Exception:
        return id(tensor)


def _example(args: Any, result: Any) -> dict[str, Any]:
    """Index of the first non-finite value, and what went in at that place where the shapes tell."""
    at = torch.nonzero(~torch.isfinite(result.detach().reshape(-1)))[0, 0]
    index = [int(i) for i in torch.unravel_index(at, result.shape)] if result.dim() else []
    given = []
    for value in args:
        if isinstance(value, (int, float)):
            given.append(float(value))
        elif isinstance(value, torch.Tensor):
            with contextlib.suppress(RuntimeError):
                given.append(torch.broadcast_to(value.detach(), result.shape).reshape(-1)[at].item())
    return {"index": index, "there": tensors.plain(given)}
