"""Do the samples of a batch stay apart in the model: asked once, of the second step, in a copy of the process.

The outermost modules that ran in that step run twice more in the copy, where nothing reaches the training (``mixing``
says what is compared). The training goes on meanwhile, bit for bit as without; the answer comes through a pipe.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import re
import select
import sys
import threading
import time
import weakref
from typing import Any

import torch

from . import callers, capture, derivatives, interrupts, isolate, tensors
from .probe import Backward, Probe, Step

SECONDS = 20
"""Life of the copy; a small model takes a fraction of one."""
WAIT_SECONDS = 5.0
"""How long the end of a short training waits for the answer."""
MOST_NUMBERS, MOST_INPUTS = 20_000_000, 4_000_000
"""Parameters, and numbers of one input, beyond which no copy is made: it would take long beside the training."""
MOST_MODULES = 3
SPEAKS_AT_FORK = ("jax", "tokenizers", "grpc", "ray", "tensorflow")
"""Modules that write a warning to the program's output when a process forks."""
SIGNS = {
    "reshape": (
        "live-samples-mixed-by-reshape",
        "a reshape puts values of different samples into one row: one sample's result depends on the others",
    ),
    "softmax": (
        "live-samples-mixed-by-softmax",
        "numbers are normalised over the samples of the batch: one sample's result depends on the others",
    ),
    "recurrence": (
        "live-samples-mixed-by-sequence-layer",
        "a sequence layer runs over the samples of the batch instead of the positions (batch_first is off)",
    ),
    "reshape-moves": (
        "live-reshape-moves-dimensions",
        "a reshape from {before} to {after} changes the places of dimensions without moving the values",
    ),
    "dropout": (
        "live-dropout-in-evaluation",
        "dropout works in evaluation mode as well: a function that is not told the mode",
    ),
    "later-tokens": (
        "live-results-depend-on-later-tokens",
        "results at a position change with later tokens, which are the targets",
    ),
    "positions-exchangeable": (
        "live-positions-exchangeable",
        "attention can't tell positions apart: two tokens that change places change nothing behind them",
    ),
    "derivative": (
        "live-backward-no-derivative",
        "what {function}.backward gives back is no derivative of its forward: slopes as measured differ by {off}",
    ),
}
"""What is found (``mixing``) to the sign and its text."""
MEANT = re.compile(r"\bmc\b|mc_?drop|monte.?carlo|bayes|uncertain|stochastic|n_passes", re.IGNORECASE)
"""Words of programs that leave dropout on to sample predictions."""


class Samples(Probe):
    """Events ``live-samples-mixed-by-…`` for the first way in which samples meet and are not meant to."""

    name = "samples"
    rarely = frozenset(("backward", "after_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._handle: Any = None
        self._thread = 0
        self._wanted: dict[int, Any] = {}
        self._calls: dict[int, tuple[Any, Any, Any]] = {}
        self._copy: tuple[int, int, float, dict[int, str]] | None = None
        """Process, pipe, when it began, names of modules."""
        self._done = False
        self._functions = derivatives.Functions()
        self._waiting: list[tuple[str, str | None, dict[str, Any]]] = []

    def after_step(self, step: Step) -> None:
        """Before the second step: have the outermost modules tell what goes in."""
        if self._done or self._handle is not None or step.number != 1 or not self._possible(step):
            return
        self._done = True
        held = {id(p) for p in step.watched.parameters}
        for root in self.recorder.names.roots:
            for module in (root, *root.children()):
                if any(id(p) in held for p in module.parameters()):
                    self._wanted[id(module)] = weakref.ref(module)
        self._functions.listen()
        if self._wanted:
            self._thread = threading.get_ident()
            hook = torch.nn.modules.module.register_module_forward_hook
            self._handle = hook(self._hook, with_kwargs=True)

    def _possible(self, step: Step) -> bool:
        if os.name != "posix" or any(name in sys.modules for name in SPEAKS_AT_FORK) or isolate.distributed():
            return False
        if capture._on_a_device() or any(getattr(p, "compiled", False) for p in self.recorder.probes):
            return False
        parameters = step.watched.parameters
        return sum(p.numel() for p in parameters) <= MOST_NUMBERS and all(p.is_cpu for p in parameters)

    def _hook(self, module: Any, args: Any, kwargs: Any, _: Any) -> None:
        known = self._wanted.get(id(module))
        if known is None or threading.get_ident() != self._thread or not torch.is_grad_enabled():
            return
        if known() is module and not torch.compiler.is_compiling() and len(self._calls) < 64:
            self._calls.setdefault(id(module), (module, args, kwargs))

    def backward(self, moment: Backward) -> None:
        """The forward of this step is done: make the copy, and hold nothing any longer."""
        if moment.step == 1 and not self._done and moment.loss.grad_fn is not None:
            self._functions.find(moment.loss.grad_fn)
        if self._handle is None and not self._functions.listening:
            return
        self._remove()
        given = self._functions.taken()
        calls, self._calls, self._wanted = list(self._calls.values()), {}, {}
        if (calls or given) and not callers.modes_active():
            self._fork(outermost(calls)[:MOST_MODULES], given)

    def _remove(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()

    def _fork(self, calls: list[tuple[Any, Any, Any]], given: derivatives.Given) -> None:
        names = {id(m): n for n, m in self.recorder.names.modules()}
        fixed = {t.untyped_storage()._cdata for m, _, _ in calls for t in (*m.parameters(), *m.buffers())}
        with interrupts.put_off():
            reader, writer = os.pipe()
            child = os.fork()
            if child:
                os.close(writer)
                self._copy = child, reader, time.monotonic(), names
                return
            try:
                os.close(reader)
                isolate.child(self.recorder.folder, SECONDS)
                os.write(writer, json.dumps(_judge(calls, fixed, given)).encode())
            except BaseException:
                os._exit(1)
            os._exit(0)

    def flush(self) -> None:
        """Take the answer if it is there."""
        self._take(0.0)

    def close(self) -> None:
        """Wait a little for it at the end of a short training."""
        self._remove()
        self._functions.taken()
        self._calls, self._wanted = {}, {}
        self._take(WAIT_SECONDS)
        for kind, module, facts in self._waiting:
            self._told(kind, module, facts)

    def _take(self, seconds: float) -> None:
        if self._copy is None:
            return
        child, reader, began, names = self._copy
        ready, _, _ = select.select([reader], [], [], seconds)
        if not ready and time.monotonic() - began < SECONDS and not seconds:
            return
        self._copy = None
        data = os.read(reader, 1 << 16) if ready else b""
        os.close(reader)
        if not ready:
            with_child(child, os.kill, 9)
        with_child(child, os.waitpid, 0)
        for found in json.loads(data) if data else ():
            item = found.pop("kind"), names.get(found.pop("module", 0)), found
            if item[0] == "dropout":
                self._waiting.append(item)  # whether the program evaluates is known at its end
            else:
                self._told(*item)

    def _told(self, kind: str, module: str | None, facts: dict[str, Any]) -> None:
        sign, text = SIGNS[kind]
        if kind == "later-tokens" and not self._next_tokens():
            return
        if kind == "dropout" and (not self._evaluates() or MEANT.search("".join(linecache.getlines(facts["path"])))):
            return
        words = {key: facts.pop(key) for key in ("function", "off") if key in facts}
        if "function" in words:
            module = f"{module}.{words['function']}" if module else words["function"]
        shapes = {key: "x".join(map(str, facts.pop(key))) for key in ("before", "after") if key in facts}
        self.tell(sign, text.format(**shapes, **words), module, step=2, **facts)

    def _next_tokens(self) -> bool:
        """Whether the targets were seen to be the next tokens of the inputs."""
        return any(getattr(p, "next_tokens", False) for p in self.recorder.probes)

    def _evaluates(self) -> bool:
        """Whether the program has put a module into evaluation mode."""
        return any(getattr(p, "evaluation", None) is not None for p in self.recorder.probes)


def with_child(child: int, call: Any, argument: int) -> None:
    """``call(child, argument)``; somebody else of this process may have waited for the child."""
    try:
        call(child, argument)
    except (ChildProcessError, ProcessLookupError):
        return


def outermost(calls: list[tuple[Any, Any, Any]]) -> list[tuple[Any, Any, Any]]:
    """``calls`` without those of modules that stand within another one that was called."""
    inner = {id(part) for module, _, _ in calls for part in module.modules() if part is not module}
    return [call for call in calls if id(call[0]) not in inner]


def _judge(calls: list[tuple[Any, Any, Any]], fixed: set[int], given: derivatives.Given) -> list[dict[str, Any]]:
    """In the copy: what is found in each of the modules, each kind once."""
    from . import mixing

    found: dict[str, dict[str, Any]] = {}
    for module, args, kwargs in calls:
        sizes = [t.numel() for t in tensors.inside((args, kwargs))]
        if not sizes or max(sizes) > MOST_INPUTS:
            continue
        try:
            for item in mixing.look(module, args, kwargs, fixed):
                found.setdefault(item["kind"], item)
        except Exception:
            continue
    with contextlib.suppress(Exception):
        for item in derivatives.look(given):
            found.setdefault(item["kind"], item)
    return list(found.values())
