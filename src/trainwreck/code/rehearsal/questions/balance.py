"""Does one term of the loss outweigh the others by far?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.terms import averaged, losses_of, weighed_at

FAR = 300.0
"""Between the largest weight and the next of terms that are averaged alike: pix2pix (arXiv:1611.07004) uses 100 for
L1 beside an adversarial term, detectors stay below 20."""
LARGE = 100.0
"""Only a large weight is told: small ones (1e-4 for a penalty) are the usual way to write a regulariser."""


def outweighed(run: Rehearsing) -> Iterator[Answer]:
    """A written weight of a hundred or more that is hundreds of times that of every other term, all averages."""
    told: set[int] = set()
    for event, terms in losses_of(run):
        known = [t for t in terms if t.sure and not t.factors and averaged(t) == "mean" and t.weight]
        if len(known) < 2 or len(known) < len(terms):
            continue
        top = max(known, key=lambda t: abs(t.weight))
        rest = max(abs(t.weight) for t in known if t is not top)
        if top.weight < max(LARGE, FAR * rest):
            continue
        place = weighed_at(run, top) or top.node.place
        if place is None or id(place[0]) in told:
            continue
        told.add(id(place[0]))
        text = f"this term counts {top.weight:g} times, the others at most {rest:g} times: they hardly move the weights"
        yield Answer(place, text, (event.place,) if event.place is not None else ())
