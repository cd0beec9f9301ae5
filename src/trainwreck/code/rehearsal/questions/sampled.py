"""Signals: does the network hear them at the rate at which it learned them?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place, is_module
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.frontends import hears, settings_of
from trainwreck.code.rehearsal.questions.paths import evaluated, feeding
from trainwreck.code.rehearsal.questions.places import parting
from trainwreck.code.rehearsal.questions.roles import trained as learned_values
from trainwreck.code.rehearsal.questions.splits import sides

RESAMPLES = frozenset(["resample", "decimate", "resample_poly"])
MAX_NEAR = 3000


def other_rate(run: Rehearsing) -> Iterator[Answer]:
    """The evaluation's signals are made, or thinned out, at another rate than those of the training.

    Asked only of networks that hear: spectra or convolutions along the time."""
    both = sides(run)
    if not any(hears(n) for n in both.train_nodes.values()) and not any(n.op == "conv1d" for n in learned_values(run)):
        return
    learned = list(both.train_nodes.values())
    clocks: dict[int, list[Node]] = {}
    for node in learned:
        if node.place is not None and _clock(node) is not None:
            clocks.setdefault(id(node.place[0]), []).append(node)
    thinned = any(_thins(n) for n in learned)
    used = feeding(run)
    for event, given in evaluated(run):
        if not is_module(event.subject) or not any(id(p) in used for p in run.parameters(event.subject)[0]):
            continue
        known = near(given, MAX_NEAR)
        if any(id(n) not in both.train_nodes and _own_settings(n, learned) for n in known):
            continue  # a front end that is made for the other rate, or another question's
        for node in known:
            if id(node) in both.train_nodes or node.place is None:
                continue
            proof = (event.place,) if event.place is not None else ()
            if not thinned and _thins(node):
                text = "only some of the samples are kept here: the network learned from signals at the full rate"
                yield Answer(node.place, text, proof)
                return
            rate, others = _clock(node), clocks.get(id(node.place[0]), [])
            if rate is not None and others and all(_clock(o) != rate for o in others):
                place: Place = parting(node, others[0]) or node.place
                text = f"these signals have a rate of {rate:g}, and the network learned from such with another one"
                yield Answer(place, text, proof)
                return


def _own_settings(node: Node, learned: list[Node]) -> bool:
    """True for a transform with settings that the training's does not have."""
    mine = settings_of(node)
    if mine is None:
        return False
    known = [theirs for n in learned if (theirs := settings_of(n)) is not None and theirs[0] == mine[0]]
    written = {k: v for k, v in mine[1].items() if isinstance(v, int | float | str)}
    return all(any(theirs[1].get(k) != v for k, v in written.items()) for theirs in known)


def _clock(node: Node) -> float | None:
    """The rate of a time axis: ``arange(n) / rate``."""
    if node.op != "div" or len(node.inputs) < 2 or not isinstance(node.inputs[1], int | float):
        return None
    times = node.inputs[0]
    return float(node.inputs[1]) if isinstance(times, Node) and times.op == "arange" else None


def _thins(node: Node) -> bool:
    """``wave[..., ::2]``, or a resampling."""
    if node.op in RESAMPLES:
        return True
    if node.op != "getitem" or len(node.inputs) < 2:
        return False
    index = node.inputs[1]
    last = index[-1] if isinstance(index, tuple) and index else index
    if not isinstance(last, Obj) or last.kind != "builtins.slice":
        return False
    start, stop, step = last.args
    axes = len(node.shape.dims) if not node.shape.open else 0
    along_time = isinstance(index, tuple) or axes == 1
    return along_time and start in (None, 0, 1) and stop is None and isinstance(step, int) and step > 1


__all__ = ["other_rate"]
