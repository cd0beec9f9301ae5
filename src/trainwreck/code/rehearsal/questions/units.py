"""Are there units that are off for every input from the start?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node
from trainwreck.code.rehearsal.graph import graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.places import once

LAYERS = frozenset(["linear", "conv1d", "conv2d", "conv3d"])
OFF = frozenset(["relu", "relu6"])
DEEP = -3.0
"""A bias of which sums of unit variance seldom reach zero: one in 700 at -3 (the normal distribution)."""
FILLS = frozenset(["constant_", "fill_"])


def off_from_the_start(run: Rehearsing) -> Iterator[Answer]:
    """A bias that is filled with a large negative number, in a layer whose output goes straight into a ReLU."""
    told: set[int] = set()
    for event in run.tape:
        if event.name != "backward":
            continue
        for node in graph(event.subject):
            if node.op not in OFF or not node.inputs or not isinstance(node.inputs[0], Node):
                continue
            layer = node.inputs[0]
            if layer.op not in LAYERS:
                continue
            for param in layer.inputs[1:]:
                written = _filled(param) if isinstance(param, Node) and param.op == "param" else None
                if written is None or written[0].place is None or id(written[0].place[0]) in told:
                    continue
                told.add(id(written[0].place[0]))
                place = once(run, written[1]) or written[0].place
                text = f"the bias starts at {written[1]:g}, and the ReLU behind it is off for nearly every input"
                yield Answer(place, text, tuple(p for p in (written[0].place, node.place) if p is not None))


def _filled(param: Node) -> tuple[Event, float] | None:
    """The last filling of a bias, where it is a large negative number."""
    fills = [e for e in param.writes if e.name in (*FILLS, "zeros_", "uniform_", "normal_", "copy_", "load_state_dict")]
    if not fills or fills[-1].name not in FILLS or not param.name.endswith("bias"):
        return None
    event = fills[-1]
    value = event.get("val", 1) if event.name == "constant_" else event.get("value", 0)
    return (event, float(value)) if isinstance(value, int | float) and value <= DEEP else None
