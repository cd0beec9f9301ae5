"""Does a model mix the samples of a batch, and which operation does it? Found by changing one sample and running again.

Works in a copy of the training (``samples``). One row of the inputs is exchanged; every operation is compared with what
it gave before. As long as samples stay apart, what differs lies at one place of one dimension. The first operation
after which that no longer holds is where samples meet: a ``view`` that should have permuted, a softmax over the batch,
a recurrent layer that takes the batch for time. Anything else (graphs, retrieval, routing) is meant and says nothing.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from . import callers, positions, reshapes, tensors

LEAST_SAMPLES = 3
"""Samples of a batch with which "one of them" and "the others" can be told apart."""
MOST_OPS, MOST_BYTES = 4000, 256 << 20
"""Operations and bytes of one forward that are compared; a larger model is not judged."""
CLOSE = 1e-5
"""Share of the largest value up to which numbers are the same."""
RESHAPES = frozenset(("view", "_unsafe_view", "reshape", "_reshape_alias", "unflatten"))
SOFTMAXES = frozenset(("_softmax", "_log_softmax"))
DROPOUTS = frozenset(("native_dropout", "bernoulli", "bernoulli_"))
_PASSED = frozenset((torch.nn.functional.__file__,))
SEQUENCE_LAYERS = (torch.nn.RNNBase, torch.nn.MultiheadAttention)


@dataclass
class _Op:
    name: str
    given: list[Any]
    made: list[Any]


@dataclass
class _Birth:
    at: int
    kind: str
    facts: dict[str, Any] = field(default_factory=dict)


Found = dict[str, Any]
"""``kind`` (a key of ``samples.SIGNS``), the place in the program, the innermost module (its ``id``)."""


class TooLarge(Exception):
    """More operations or bytes than are compared, or another way through the program."""


class _Mode(TorchDispatchMode):  # type: ignore[misc]
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Whether torch is to hide the mode from its compiler: nothing is compiled here, and that imports it."""
        return False


class _First(_Mode):
    """Keeps what goes into every operation and what comes out."""

    def __init__(self, fixed: set[int]) -> None:
        super().__init__()
        self.fixed, self.bytes = fixed, 0
        self.ops: list[_Op] = []
        self.found: list[Found] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [self._kept(t) for t in tensors.inside((args, kwargs))]
        shape = args[0].shape if args and isinstance(args[0], torch.Tensor) else None
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in RESHAPES and shape is not None and reshapes.moves(shape, result.shape):
            self._note("reshape-moves", before=list(shape), after=list(result.shape))
        elif name in DROPOUTS:
            self._note("dropout")
        self.ops.append(_Op(func.overloadpacket.__name__, given, [self._kept(t) for t in tensors.inside(result)]))
        if len(self.ops) > MOST_OPS or self.bytes > MOST_BYTES:
            raise TooLarge
        return result

    def _note(self, kind: str, **facts: Any) -> None:
        """Keep what a line of the user's did itself, or through a function of ``torch.nn.functional``."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename in _PASSED:
            frame = frame.f_back
        if frame is not None and callers.is_users(frame.f_code.co_filename):
            place = {"path": callers.relative(frame.f_code.co_filename), "line": frame.f_lineno}
            owner = frame.f_locals.get("self")
            module = {"module": id(owner)} if isinstance(owner, torch.nn.Module) else {}
            self.found.append({"kind": kind, **place, **module, **facts})

    def _kept(self, tensor: Any) -> Any:
        if _memory(tensor) in self.fixed:
            return None
        self.bytes += tensor.numel() * tensor.element_size()
        return tensor.detach().clone()


class _Second(_Mode):
    """Compares the same operations after one sample has been exchanged."""

    def __init__(self, ops: list[_Op], fixed: set[int], samples: int) -> None:
        super().__init__()
        self.ops, self.fixed, self.samples = ops, fixed, samples
        self.at = 0
        self.births: list[_Birth] = []
        self.ways: list[tuple[set[int], set[int]]] = []
        """Memory that each operation read and wrote."""
        self._held: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        known = self.ops[self.at] if self.at < len(self.ops) else None
        name = func.overloadpacket.__name__
        given = list(tensors.inside((args, kwargs)))
        if known is None or known.name != name or len(known.given) != len(given):
            raise TooLarge
        before = [self._crossed(t, old) for t, old in zip(given, known.given, strict=True)]
        read = {_memory(t) for t in given}
        result = func(*args, **(kwargs or {}))
        made = list(tensors.inside(result))
        after = [self._crossed(t, old) for t, old in zip(made, known.made, strict=True)]
        # Held so that memory is not used again and identifies a value; a result that is held is detached by torch.
        self._held += [_storage(t) for t in (*given, *made)]
        self.ways.append((read, {_memory(t) for t in made}))
        if True in after and True not in before:
            self.births.append(_Birth(self.at, self._kind(name, args), _place()))
        self.at += 1
        return result

    def _crossed(self, tensor: Any, old: Any) -> bool | None:
        """Whether what differs is spread over samples; None where nothing differs."""
        if old is None or _memory(tensor) in self.fixed or tensor.shape != old.shape:
            return None
        changed = _changed(old, tensor)
        return None if changed is None else not _apart(changed, self.samples)

    def _kind(self, name: str, args: Any) -> str:
        if name in RESHAPES:
            return "reshape"
        if name in SOFTMAXES and args[0].numel() == args[0].shape[args[1]]:
            return "list"  # one score for each row: the rows are the list that is ranked, or the bag that is pooled
        if name in SOFTMAXES or (name == "linalg_vector_norm" and True in args[3:4]):
            return "softmax"
        return name


def look(module: Any, args: Any, kwargs: Any, fixed: set[int]) -> list[Found]:
    """What mixes the samples that go through ``module`` (``reshape``, ``softmax``, ``recurrence``; nothing where they
    stay apart, or meet in another way), reshapes that move dimensions, dropout in evaluation mode.

    ``fixed``: memory of parameters and buffers. Changes modes and random states: for a process of its own.
    """
    leaves, spec = _pytree.tree_flatten((args, kwargs))
    first = next((t for t in leaves if isinstance(t, torch.Tensor) and t.dim() >= 2), None)
    if first is None or first.layout != torch.strided:
        return []
    module.eval()
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad():
        base, output = _run(_First(fixed), module, _pytree.tree_unflatten(leaves, spec))
        mixed = _mixed(module, leaves, spec, first, base, output)
        found = [mixed] if mixed is not None else []
        return [*found, *base.found, *positions.look(module, leaves, spec, output[0] if output else None, base)]


def _mixed(module: Any, leaves: list[Any], spec: Any, first: Any, base: _First, output: list[Any]) -> Found | None:
    samples = int(first.shape[0])
    if samples < LEAST_SAMPLES or not any(t.dim() and t.shape[0] == samples for t in output):
        return None
    try:
        other = _exchanged(leaves, 0, samples)
        if other is None:
            return None
        mode, changed = _run(_Second(base.ops, base.fixed, samples), module, _pytree.tree_unflatten(other, spec))
    except TooLarge:
        return None
    for old, new in zip(output, changed, strict=False):
        spread = _changed(old, new) if old.dim() and old.shape[0] == samples else None
        if spread is not None and _touched(spread, 0) > 1 and not _other_way(module, leaves, spec, first, old):
            return _cause(mode, first, _memory(new))
    return None


def _cause(mode: _Second, first: Any, result: int) -> Found | None:
    """The first operation where samples meet on the way to the result, unless they also meet in ways that are meant."""
    needed = {result}
    reached: set[int] = set()
    for at in range(len(mode.ways) - 1, -1, -1):
        read, written = mode.ways[at]
        if written & needed:
            reached.add(at)
            needed |= read
    births = [b for b in mode.births if b.at in reached]
    for birth in births:
        if birth.facts.pop("along", 0) == first.shape[0] and _sequence_input(first):
            birth.kind = "recurrence"
    if not births or any(b.kind not in ("reshape", "softmax", "recurrence") for b in births):
        return None
    return {"kind": births[0].kind, **births[0].facts}


def _sequence_input(first: Any) -> bool:
    """True for a batch of sequences: (samples, positions, …), or (samples, positions) of token numbers."""
    return bool(first.dim() >= 3 or (first.dim() == 2 and not first.is_floating_point()))


def _other_way(module: Any, leaves: list[Any], spec: Any, first: Any, output: Any) -> bool:
    """True if the second dimension may be the one of the samples: what is changed along it stays apart (time first)."""
    if first.dim() < 2 or output.dim() < 2 or output.shape[1] != first.shape[1] or first.shape[1] < LEAST_SAMPLES:
        return False
    other = _exchanged(leaves, 1, int(first.shape[1]))
    if other is None:
        return True
    torch.manual_seed(0)
    arguments, options = _pytree.tree_unflatten(other, spec)
    again = [t for t in _results(module(*arguments, **options)) if t.shape == output.shape]
    changed = _changed(output, again[0]) if again else None
    return changed is None or _touched(changed, 1) <= 1


def _run(mode: Any, module: Any, given: Any) -> tuple[Any, list[Any]]:
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    arguments, options = given
    with mode:
        result = module(*arguments, **options)
    return mode, _results(result)


def _results(value: Any) -> list[Any]:
    """The tensors of floating numbers among what a model gives."""
    return [t for t in tensors.inside(value) if t.is_floating_point()]


def _exchanged(leaves: list[Any], dimension: int, count: int) -> list[Any] | None:
    """``leaves`` with one sample of every tensor that has as many as the first one changed; None if none can be."""
    at, from_ = count // 2, count // 2 - 1
    found, changed = [], False
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and leaf.dim() > dimension and leaf.shape[dimension] == count:
            new = leaf.detach().clone()
            row, source = new.select(dimension, at), leaf.detach().select(dimension, from_)
            if leaf.is_floating_point():
                # No value stays as it was, so that nothing is taken for apart by accident.
                noise = torch.linspace(0.5, 1.5, max(1, row.numel())).reshape(row.shape).to(row.dtype)
                scale = leaf.detach().abs().amax().clamp(min=1e-6) * 0.05
                row.copy_(source + noise * scale)
            else:
                row.copy_(source)
            changed = changed or not torch.equal(new, leaf)
            found.append(new)
        else:
            found.append(leaf)
    return found if changed else None


def _changed(old: Any, new: Any) -> Any:
    """Where two tensors differ, None where they do not (or can't be compared)."""
    if old.shape != new.shape or not old.numel() or old.is_complex():
        return None
    if old.is_floating_point():
        a, b = old.float().nan_to_num(), new.detach().float().nan_to_num()
        different = (a - b).abs() > CLOSE * torch.maximum(a.abs().amax(), b.abs().amax())
    else:
        different = old != new.detach()
    return different if bool(different.any()) else None


def _touched(changed: Any, dimension: int) -> int:
    return int(changed.movedim(dimension, 0).flatten(1).any(1).sum()) if changed.dim() > 1 else int(changed.sum())


def _apart(changed: Any, samples: int) -> bool:
    """True if what differs belongs to one sample: a share of ``1 / samples`` of one dimension, or one place of
    neighbouring dimensions into which that of the samples was split."""
    shape = changed.shape
    for d in range(changed.dim()):
        if shape[d] % samples == 0 and _touched(changed, d) <= shape[d] // samples:
            return True
    for begin in range(changed.dim()):
        size = shape[begin]
        for end in range(begin + 1, changed.dim()):
            size *= shape[end]
            if size == samples and _touched(changed.flatten(begin, end), begin) <= 1:
                return True
            if size >= samples:
                break
    return False


def _place() -> dict[str, Any]:
    """The user's line and the innermost module under way; ``along``: the positions that a sequence layer sees, which
    takes time first."""
    frame: Any = sys._getframe(2)
    facts: dict[str, Any] = {}
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module):
            facts.setdefault("module", id(owner))
            if isinstance(owner, SEQUENCE_LAYERS) and not owner.batch_first:
                given = frame.f_locals.get("input", frame.f_locals.get("query"))
                if isinstance(given, torch.Tensor) and given.dim() == 3:
                    facts["along"] = int(given.shape[0])
        if callers.is_users(frame.f_code.co_filename) and "line" not in facts:
            facts["path"], facts["line"] = callers.relative(frame.f_code.co_filename), frame.f_lineno
        frame = frame.f_back
    return facts


def _storage(tensor: Any) -> Any:
    return tensor.untyped_storage()


def _memory(tensor: Any) -> int:
    return int(_storage(tensor)._cdata)
