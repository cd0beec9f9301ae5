"""Averages, targets and teachers: models of the shape of a trained one that no optimizer holds. Do they follow it?"""

from __future__ import annotations

import math
import weakref
from typing import Any

import torch

from . import callers
from .calls import Calls
from .origins import Origins
from .probe import Probe, Step
from .watched import foreach_norms, sample_of

TABLE = "copies"
MAX_COPIES = 8
MAX_PARAMETERS = 32
"""Parameters of one copy that are compared, spread over the model."""
JUDGED = 60
"""Steps after which a copy is judged for the first time."""
LAGS, LAGS_AFTER = 0.08, 150
"""An average that holds more than nine tenths of its initial values after this many steps is no average of the run:
with decay 0.999, 150 steps bring it 14% of the way (less where the weights move on, hence 8%)."""
OUT_OF_SCALE = 3.0
"""Weight norms of an average and of its source that differ by this factor: an average lies between old and new weights,
whose norms change by some ten per cent in these steps."""


LOW = (torch.bfloat16, torch.float16)
STUCK = 0.1
"""Share of the weights that should have moved and did not; of an average in single precision it is none."""
APART = 0.1
"""Relative difference from the source that an average must make up for: 25 times the spacing of bfloat16 at most."""
STALE_STEPS, STALE_LOOKS = 150, 6
"""Steps in which an average with decay 0.999 goes a seventh of the way: 1.4% of the weight, more than the spacing."""


class Stale:
    """Elements of a copy in half precision: which never changed, and which were always away from the source.

    ``place``: where the copy got its type.
    """

    def __init__(self, place: callers.Place | None) -> None:
        self.place = place
        self._first = self._looks = self.steps = 0
        self._values: list[Any] = []
        self._same: list[Any] = []
        self._apart: list[Any] = []

    def look(self, number: int, copies: list[Any], sources: list[Any]) -> None:
        """Compare with the first look."""
        apart = [(a - b).abs() > APART * a.abs() for a, b in zip(copies, sources, strict=True)]
        if not self._looks:
            self._first, self._values = number, [c.clone() for c in copies]
            self._same, self._apart = [torch.ones_like(a) for a in apart], apart
        else:
            self._same = [s & (c == v) for s, c, v in zip(self._same, copies, self._values, strict=True)]
            self._apart = [a & b for a, b in zip(self._apart, apart, strict=True)]
        self._looks += 1
        self.steps = number - self._first

    def share(self) -> float | None:
        """Of the elements that were always apart, those that never changed.

        None where that says nothing: too short, too few, or a copy that is replaced as a whole now and then.
        """
        if self._looks < STALE_LOOKS or self.steps < STALE_STEPS:
            return None
        same, apart = torch.cat(self._same), torch.cat(self._apart)
        if not 0.02 < float(same.float().mean()) < 0.98 or float(apart.float().mean()) < 0.02:
            return None
        return float((same & apart).sum() / apart.sum())


class Copies(Probe):
    """Table ``copies``: ``<copy>.distance`` and ``.ratio`` of norms; events for those that grow, shrink or stay."""

    name = "copies"
    rarely = frozenset(("after_step",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._pairs: list[tuple[str, list[tuple[weakref.ref[Any], weakref.ref[Any]]], list[Any]]] | None = None
        self._told: set[str] = set()
        self._moved: dict[str, bool] = {}
        self._starts: dict[str, list[Any]] = {}
        self._share: dict[str, float] = {}
        self._stale: dict[str, Stale] = {}
        self._norms: dict[str, tuple[list[Any], list[Any], list[Any]]] = {}
        """Running means of copies with batch norm, those of their sources, and what the former were at first: a few
        numbers a layer, held to the end, when the model itself may be gone."""

    def after_step(self, step: Step) -> None:
        """At sampled steps compare each copy with its source."""
        if step.watched.index or not step.sampled or not step.watched.on_cpu:
            return
        if self._pairs is None or step.number in (5, 20):
            self._pairs = self._find()
        for name, members, first in self._pairs:
            alive = [(a, b) for a_ref, b_ref in members if (a := a_ref()) is not None and (b := b_ref()) is not None]
            if len(alive) == len(members):
                self._compare(name, alive, first, step)

    def _compare(self, name: str, alive: list[tuple[Any, Any]], first: list[Any], step: Step) -> None:
        copies = [sample_of(a).float() for a, _ in alive]
        sources = [sample_of(b).float() for _, b in alive]
        sizes = torch.stack([*foreach_norms(copies), *foreach_norms(sources)]).tolist()
        gaps = torch.stack(foreach_norms(torch._foreach_sub(copies, sources))).tolist()
        count = len(alive)
        own, theirs = _root(sizes[:count]), _root(sizes[count:])
        if theirs <= 0:
            return
        ratio = own / theirs
        self.recorder.row(
            TABLE, {"step": step.number, f"{name}.ratio": ratio, f"{name}.distance": _root(gaps) / theirs}
        )
        start = self._starts.setdefault(name, [s.clone() for s in sources])
        way = _root(torch.stack(foreach_norms(torch._foreach_sub(sources, start))).tolist())
        own_way = _root(torch.stack(foreach_norms(torch._foreach_sub(copies, first))).tolist())
        self._share[name] = own_way / way if way > 0 else 0.0
        if step.number >= JUDGED and any(a.dtype in LOW for a, _ in alive):
            if name not in self._stale:
                self._stale[name] = Stale(self._cast([a for a, _ in alive]))
            self._stale[name].look(step.number, copies, sources)
        if not self._moved.get(name) and any(not torch.equal(a, b) for a, b in zip(copies, first, strict=True)):
            self._moved[name] = True
            self._tell_target(name, step)
        if step.number < JUDGED or name in self._told:
            return
        if self._moved.get(name) and not (1 / OUT_OF_SCALE < ratio < OUT_OF_SCALE):
            self._told.add(name)
            text = f"the weights of the copy {name} have {ratio:.3g} times the norm of those it averages"
            self.recorder.event("live-average-out-of-scale", text, name, step=step.number, value=round(ratio, 4))

    def close(self) -> None:
        """Tell of copies that never moved, or hardly."""
        for name, _, _ in self._pairs or ():
            self._tell_stale(name)
            self._tell_norms(name)
            share = self._share.get(name, 1.0)
            if self.recorder.step > LAGS_AFTER and self._moved.get(name) and share < LAGS:
                text = f"the copy {name} has come {share:.1%} of the way that the trained weights went in the whole run"
                self.recorder.event("live-average-lags", text, name, value=round(share, 4))
            if self.recorder.step > JUDGED and not self._moved.get(name):
                self.recorder.event("live-copy-never-moves", f"the copy {name} of the trained model never moved", name)

    def _cast(self, parameters: list[Any]) -> callers.Place | None:
        origins = next((p for p in self.recorder.probes if isinstance(p, Origins)), None)
        return origins.cast(parameters) if origins is not None else None

    def _tell_target(self, name: str, step: Step) -> None:
        """A copy that moves and is asked in training, without gradients, gives the loss targets that move."""
        calls = next((p for p in self.recorder.probes if isinstance(p, Calls)), None)
        module = next((m for n, m in self.recorder.names.modules() if n == name), None)
        if calls is None or module is None:
            return
        found = [call for part in module.modules() if (call := calls.of(part)) is not None]
        if found and not any(call.with_graph for call in found):
            text = f"the loss is measured against {name}, a copy of the trained model that follows it"
            self.tell("moving-target", text, name, step=step.number)

    def _tell_norms(self, name: str) -> None:
        """An average whose weights moved while the running statistics in it are still those that it began with."""
        mine, theirs, first = self._norms.get(name, ([], [], []))
        if not mine or len(mine) != len(theirs) or not self._moved.get(name) or self.recorder.step < JUDGED:
            return
        kept = all(torch.equal(a, b) for a, b in zip(mine, first, strict=True))
        apart = sum(bool(((a - b).abs() > APART).any()) for a, b in zip(mine, theirs, strict=True))
        if kept and 2 * apart >= len(mine):
            text = (
                f"the weights of the copy {name} follow the trained ones, its running statistics of batch norm do not"
            )
            self.tell("live-average-without-statistics", text, name)

    def _tell_stale(self, name: str) -> None:
        stuck = self._stale[name].share() if name in self._stale else None
        if stuck is not None and stuck > STUCK:
            place = self._stale[name].place
            facts: dict[str, Any] = {"path": place[0], "line": place[1]} if place is not None else {}
            text = (
                f"{stuck:.0%} of the weights of {name} that differ from the trained ones by more than a tenth have not"
                f" changed in {self._stale[name].steps} steps: the changes are smaller than the spacing of their type"
            )
            self.recorder.event("live-average-stale", text, name, value=round(stuck, 3), **facts)

    def _find(self) -> list[tuple[str, list[tuple[weakref.ref[Any], weakref.ref[Any]]], list[Any]]]:
        """Pairs of (copy, source) with their parameters, and what the copy held at first."""
        before = {name: first for name, _, first in self._pairs or ()}
        held = {id(p) for w in self.recorder.optimizers.values() for p in w.parameters}
        known = list(self.recorder.names.modules())
        trained = [(n, m) for n, m in known if _all_held(m, held)]
        others = [
            (n, m)
            for n, m in known
            if not any(id(p) in held for p in m.parameters()) and any(True for _ in m.parameters())
        ]
        found: list[tuple[str, list[tuple[weakref.ref[Any], weakref.ref[Any]]], list[Any]]] = []
        taken: set[str] = set()
        for name, module in others:
            if len(found) >= MAX_COPIES or any(name.startswith(f"{t}.") for t in taken):
                continue
            shapes = [p.shape for p in module.parameters()]
            source = next((m for _, m in trained if [p.shape for p in m.parameters()] == shapes), None)
            if source is None or len(shapes) < 2:
                continue
            pairs = list(zip(module.parameters(), source.parameters(), strict=True))
            pairs = pairs[:: len(pairs) // MAX_PARAMETERS + 1]
            taken.add(name)
            first = before.get(name) or [sample_of(a).float().clone() for a, _ in pairs]
            if name not in self._norms and (held_means := means(module)):
                self._norms[name] = held_means, means(source), [m.clone() for m in held_means]
            found.append((name, [(weakref.ref(a), weakref.ref(b)) for a, b in pairs], first))
        return found


def _all_held(module: Any, held: set[int]) -> bool:
    parameters = list(module.parameters())
    return bool(parameters) and all(id(p) in held for p in parameters)


def means(module: Any) -> list[Any]:
    """The running means of the norm layers of a module that keep any."""
    found = [getattr(m, "running_mean", None) for m in module.modules()]
    return [m for m in found if isinstance(m, torch.Tensor) and m.device.type == "cpu"]


def _root(values: list[float]) -> float:
    return math.sqrt(sum(v * v for v in values))
