"""Quantisation after training: do the observers of a prepared network see data such as it is used with?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import RANDOM, paths
from trainwreck.code.rehearsal.questions.scale import Size, size

PREPARES = frozenset(["prepare_fx", "prepare_pt2e"])
CONVERTS = frozenset(["convert_fx", "convert_pt2e"])
FRESH = frozenset(["randn", "rand", "randn_like", "rand_like"])
FAR = 2.0
"""Ranges that differ by this factor leave one bit of eight unused, or cut off half of the values."""


def calibrated_wrongly(run: Rehearsing) -> Iterator[Answer]:
    """``convert_fx(prepare_fx(net))`` with nothing, or only noise, shown to what was prepared."""
    for made in (n for n in run.nodes if n.op in CONVERTS and n.full.startswith("torch.") and n.place is not None):
        prepared = made.inputs[0] if made.inputs else None
        if not isinstance(prepared, Node) or prepared.op not in PREPARES or made.place is None:
            continue
        users = [n for n in run.nodes if any(i is prepared for i in n.inputs) and n.op not in CONVERTS]
        handed = [e for e in run.tape if any(a is prepared for a in (*e.args, *e.options.values()))]
        proof = (prepared.place,) if prepared.place is not None else ()
        if not users and not handed:
            yield Answer(
                made.place, "nothing was shown to the prepared network: its ranges are those of no data", proof
            )
            return
        if any(n.op != "call" for n in users) or handed:
            continue
        shown = [i for n in users for i in n.inputs[1:] if isinstance(i, Node)]
        used = [i for n in run.nodes if n.op == "call" and n.inputs[:1] == (made,) for i in n.inputs[1:2]]
        place = users[0].place
        noise = bool(shown) and all(i.op in FRESH for i in shown)
        if noise and place is not None and any(isinstance(u, Node) and _otherwise(run, shown[0], u) for u in used):
            text = "the ranges are taken from noise here, and the network is used with data of another kind"
            yield Answer(place, text, (made.place,))
            return


def _otherwise(run: Rehearsing, noise: Node, data: Node) -> bool:
    """True for data that were read, or whose size is known to be another one."""
    roots = [p.root for p in paths(run, data)]
    if roots and all(r.op.startswith(("read", "load", "fetch", "example")) for r in roots):
        return True
    memo: dict[int, Size | None] = {}
    one, other = size(noise, memo), size(data, memo)
    if one is None or other is None or not any(r.op in RANDOM for r in roots):
        return False
    return not 1 / FAR < other.rms / max(one.rms, 1e-9) < FAR
