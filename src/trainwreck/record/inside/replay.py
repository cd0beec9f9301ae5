"""Run the failing step once more, op by op, and say where its non-finite value was born.

Works in a copy of the training (a fork) or in a process that ends afterwards: what it runs changes gradients, buffers
and random states. See ``isolate``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch

from . import callers, fallback, isolate, sites, slices, tensors, values
from .describe import describe, refer
from .events import Event, Origin, trace_back
from .trace import Tracer

MAX_UP = 30
"""Frames that are tried, from the one that called backward outwards."""
MAX_EXTENSIONS = 4
"""Times that a slice is widened by the statement that made a non-finite variable."""


@dataclass(slots=True)
class Place:
    """A frame of the stack under which backward was called: its identity, its code and where it stood."""

    frame: int
    code: CodeType
    instruction: int


@dataclass(slots=True)
class Question:
    """What is known at the alarm. ``frames``: the live stack, innermost first. ``past``: the stack under which
    backward ran, where it has returned already. ``random``: states of torch's generator that may be the step's."""

    gradient: bool
    frames: list[FrameType]
    past: list[Place] = field(default_factory=list)
    random: list[Any] = field(default_factory=list)
    seconds: float = 25.0
    overrides: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Values to be used for variables of a frame (by its identity) instead of the present ones."""


@dataclass(slots=True)
class Attempt:
    """One run of a slice: what it gave, and the way of its non-finite values."""

    tracer: Tracer
    loss: Any
    origin: Origin | None
    reproduced: bool
    cut: slices.Slice | None
    frame: FrameType
    notes: list[str] = field(default_factory=list)
    around: list[FrameType] = field(default_factory=list)
    """All frames of the stack: a tensor that ``frame`` does not name may have its name there."""


class Replay:
    """Answers a question with an origin as plain JSON. Never raises."""

    def __init__(self, question: Question, known: values.Known) -> None:
        self.question = question
        self.known = known
        self.notes: list[str] = []
        self.until = time.monotonic() + question.seconds
        self._broken: list[tuple[str, Any]] = []
        """State from the step before that is not finite by now, of the slice that ran last: name and tensor."""
        self._inherited: dict[str, Any] = {}

    def answer(self) -> dict[str, Any]:
        """The origin: ``describe`` says what stands in it."""
        try:
            return self._answer()
        except Exception as problem:
            self.notes.append(f"replay failed ({type(problem).__name__}: {problem})")
            return self._unknown()

    def _answer(self) -> dict[str, Any]:
        damaged = self.known.damaged()
        if damaged:
            return describe(None, None, self.known, self.notes, damaged=damaged)
        best: Attempt | None = None
        for frame, instruction, direct in self._candidates():
            attempt = self._best(frame, instruction, direct)
            if attempt is None or not attempt.reproduced or attempt.origin is None:
                continue
            best = attempt
            if not self._from_elsewhere(attempt):
                break
            if time.monotonic() > self.until:
                self.notes.append("the replay ran out of time on the way to the callers")
                break
        if best is None:
            return self._unknown()
        best = self._widened(best)
        return describe(best.origin, best, self.known, self.notes)

    def _candidates(self) -> Iterator[tuple[FrameType, int, bool]]:
        """(frame, where it stands, whether it called backward itself), innermost first."""
        if not self.question.gradient:
            most = outermost([f.f_code for f in self.question.frames[:MAX_UP]])
            for depth, frame in enumerate(self.question.frames[:most]):
                yield frame, frame.f_lasti, depth == 0
            return
        live = {(id(f), f.f_code): f for f in self.question.frames}
        most = outermost([p.code for p in self.question.past[:MAX_UP]])
        for depth, place in enumerate(self.question.past[:most]):
            found = live.get((place.frame, place.code))
            if found is not None:
                yield found, place.instruction, depth == 0

    def _best(self, frame: FrameType, instruction: int, direct: bool) -> Attempt | None:
        """The first run of this frame's step that is not finite either: sliced, or as a whole up to backward."""
        tried: Attempt | None = None
        for random in self.question.random or [None]:
            for run in (self._sliced, self._whole):
                if run == self._whole and not self._worth_whole(direct):
                    continue
                try:
                    attempt = run(frame, instruction, direct, random)
                except sites.NoSlice:
                    continue
                except (Exception, SystemExit, KeyboardInterrupt) as problem:  # the user's code may raise any
                    self.notes.append(f"{frame.f_code.co_name}: {type(problem).__name__}: {problem}"[:200])
                    continue
                tried = tried or attempt
                if attempt.reproduced:
                    return attempt
                if run == self._sliced and self._broken and not self._inherited:
                    self._inherited = fallback.state(*self._broken[0], attempt)
                if time.monotonic() > self.until:
                    return tried
        return tried

    def _worth_whole(self, direct: bool) -> bool:
        return not direct

    def _sliced(self, frame: FrameType, instruction: int, direct: bool, random: Any, extend: Any = ()) -> Attempt:
        names = set(extend)
        if self.question.gradient and direct:
            place = sites.site(frame.f_code, instruction)
            names |= {n for e in slices.losses_of(place.call, direct) for n in slices.reads(e) if _read_out(frame, n)}
        cut = slices.cut(frame, instruction, direct, names)
        space = self._space(cut, frame)
        notes: list[str] = []

        def run() -> Any:
            for code in cut.code:
                try:
                    exec(code, space)
                except isolate.Blocked as problem:
                    notes.append(f"line {code.co_firstlineno} was left out: {problem}")
            return space.get(slices.LOSS)

        return self._traced(run, frame, cut, random, notes)

    def _whole(self, frame: FrameType, instruction: int, direct: bool, random: Any) -> Attempt:
        """Run the statement that led to backward, and those before it that make objects' state, up to backward."""
        place = sites.site(frame.f_code, instruction)
        space = frame.f_locals if frame.f_locals is frame.f_globals else {**frame.f_globals, **frame.f_locals}
        space.update(self.question.overrides.get(id(frame), {}))
        before = [] if self.question.gradient else slices.calls_before(place)
        codes = sites.compiled([*before, place.statement], frame.f_code, place.owner, space)

        def run() -> Any:
            try:
                with isolate.caught_backward():
                    for code in codes:
                        with contextlib.suppress(isolate.Blocked):
                            exec(code, space)
            except isolate.Reached as reached:
                return reached.loss
            return None

        return self._traced(run, frame, None, random, [])

    def _space(self, cut: slices.Slice, frame: FrameType) -> dict[str, Any]:
        """The namespace to run in: state that the step has overwritten is replaced by something finite."""
        space = cut.namespace if cut.namespace is frame.f_globals else dict(cut.namespace)
        space.update(self.question.overrides.get(id(frame), {}))
        self._broken = []
        for name in cut.carried:
            with contextlib.suppress(Exception):
                value = slices.evaluate(name, space)
                self._broken += [(n, t) for n, t in values.variables({name: value}) if tensors.nonfinite(t)]
                if name.isidentifier():
                    space[name] = values.before_step(value)
        return space

    def _traced(self, run: Any, frame: FrameType, cut: slices.Slice | None, random: Any, notes: list[str]) -> Attempt:
        tracer = Tracer(self.known.names)
        if random is not None:
            torch.set_rng_state(random)
        with torch.inference_mode(False), torch.enable_grad(), tracer.watching():
            given = run()
            losses = values.losses(given)
            if not losses:
                raise sites.NoSlice("the slice gives no loss")
            loss = next((t for t in losses if tensors.nonfinite(t)), losses[0])
            bad = [loss] if tensors.nonfinite(loss) else []
            if not bad and self.question.gradient:
                tracer.phase = "backward"
                bad = [g for g in backward(loss, self.known.parameters()) if tensors.nonfinite(g)]
        if not bad:
            return Attempt(tracer, loss, None, False, cut, frame, notes, self.question.frames)
        ways = [tracer.event_of(t) for t in bad]
        events = [e for e in ways if e is not None]
        origin = trace_back(events) if events else Origin(outside=bad)
        return Attempt(tracer, loss, origin, True, cut, frame, notes, self.question.frames)

    def _from_elsewhere(self, attempt: Attempt) -> bool:
        """Whether the value came into this frame from its caller, with a graph: then the caller tells more."""
        origin = attempt.origin
        return origin is not None and origin.birth is None and any(t.grad_fn is not None for t in origin.outside)

    def _widened(self, attempt: Attempt) -> Attempt:
        """Where a variable of the step is the origin and the step made it, run the statement that made it as well."""
        names: set[str] = set()
        for _ in range(MAX_EXTENSIONS):
            origin, cut = attempt.origin, attempt.cut
            if origin is None or cut is None or not origin.outside or time.monotonic() > self.until:
                break
            found = {refer(t, attempt, self.known).root for t in origin.outside} & set(cut.assigned)
            if not found - names:
                break
            names |= found
            try:
                wider = self._again(attempt, names)
            except Exception:
                break
            if not wider.reproduced or wider.origin is None:
                break
            attempt = wider
        return attempt

    def _again(self, attempt: Attempt, names: set[str]) -> Attempt:
        at = next((c for c in self._candidates() if c[0] is attempt.frame), None)
        if at is None:
            raise sites.NoSlice("the frame is gone")
        return self._sliced(*at, (self.question.random or [None])[0], names)

    def _unknown(self) -> dict[str, Any]:
        hints = self._inherited or fallback.hints(self.question, self.known)
        return describe(None, None, self.known, self.notes, hints=hints)


def outermost(codes: list[CodeType]) -> int:
    """How many frames are tried: up to the outermost one of the user. What called that (a kernel) is no step."""
    users = [i for i, code in enumerate(codes, 1) if callers.is_users(code.co_filename)]
    return users[-1] if users else len(codes)


def _read_out(frame: FrameType, name: str) -> bool:
    """Whether a name of the loss holds a plain number by now (``loss = loss.item()``), or nothing."""
    value = frame.f_locals.get(name, frame.f_globals.get(name))
    return value is None or isinstance(value, (int, float)) or (isinstance(value, torch.Tensor) and not value.dim())


def backward(loss: Any, parameters: list[Any]) -> list[Any]:
    """Gradients of ``loss``, by a backward that touches no hook of a parameter where torch allows it."""
    wanted = [p for p in parameters if p.requires_grad and p.is_leaf]
    if loss.numel() != 1:
        loss = loss.sum()
    torch.autograd.set_multithreading_enabled(False)  # The mode and the stack belong to this thread.
    try:
        return [g for g in torch.autograd.grad(loss, wanted, allow_unused=True, retain_graph=True) if g is not None]
    except RuntimeError:
        if isolate.distributed():
            raise
    for parameter in wanted:  # Reentrant checkpointing works with a plain backward only.
        parameter.grad = None
    torch.autograd.backward(loss)
    return [p.grad for p in wanted if p.grad is not None]


def stack(frame: FrameType | None, most: int = 60) -> list[FrameType]:
    """The frames from ``frame`` outwards, without ours and without torch's own ways to backward and step."""
    found: list[FrameType] = []
    while frame is not None and len(found) < most:
        path = frame.f_code.co_filename
        if found or not values.on_the_way(path):
            found.append(frame)
        frame = frame.f_back
    return found


def places(frames: list[FrameType]) -> list[Place]:
    """The same frames as places."""
    return [Place(id(f), f.f_code, f.f_lasti) for f in frames]


__all__ = ["Attempt", "Event", "Place", "Question", "Replay", "places", "stack"]
