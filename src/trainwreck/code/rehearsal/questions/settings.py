"""Values that one line computes for two uses: are the constants in it the same?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors
from trainwreck.code.rehearsal.questions.paths import RANDOM

MOVING = frozenset(
    "param batch buffer size len element counter index key text state hidden either shape getattr load open".split()
)
"""What depends on data, on their number, or on the turn of a loop."""
EXTENTS = frozenset(
    """pad reshape view expand repeat tile getitem interpolate resize zeros ones full empty split chunk unfold narrow
    unsqueeze squeeze transpose permute movedim flatten crop center_crop resample range""".split()
)
"""What says how long or how arranged something is: clips of another length may be meant."""
MAX_FIXED = 120


def settings_differ(one: Node, other: Node, seen: set[int] | None = None) -> Iterator[tuple[Value, Value, Node, Node]]:
    """Pairs of constants that two values of one line were computed with and that are not the same, each with the
    values on both sides that they stand in. Only what no data go into is compared."""
    seen = set() if seen is None else seen
    if one.op != other.op or id(one) in seen or len(one.inputs) != len(other.inputs):
        return
    seen.add(id(one))
    names = one.options.keys() & other.options.keys()
    pairs = [*zip(one.inputs, other.inputs, strict=True), *((one.options[n], other.options[n]) for n in sorted(names))]
    for a, b in pairs:
        plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b))
        if plain and a != b and one.op not in EXTENTS and one.op not in RANDOM:
            yield a, b, one, other
        elif isinstance(a, Node) and isinstance(b, Node) and a is not b and _made_alike(a, b):
            yield from settings_differ(a, b, seen)


def _made_alike(one: Node, other: Node) -> bool:
    alike = one.place is not None and other.place is not None and one.place[0] is other.place[0]
    return alike and fixed(one) and fixed(other)


def fixed(node: Node) -> bool:
    """True for a value that only constants went into."""
    for number, inner in enumerate(ancestors(node)):
        if (
            number > MAX_FIXED
            or inner.op in MOVING
            or inner.op in OPAQUE
            or inner.op in RANDOM
            or inner.owner is not None
        ):
            return False
    return True
