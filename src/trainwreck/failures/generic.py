"""Signs that any failure gives by its kind alone, whatever its message says."""

from __future__ import annotations

from collections.abc import Sequence

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.failure import Failure

_BY_TYPE = {
    "KeyError": "key-error",
    "ZeroDivisionError": "zero-division-error",
}


def generic_signs(failure: Failure, links: Sequence[Failure], places: Sequence[Where]) -> list[Evidence]:
    """``crash-traceback`` or ``traceback-not-fatal``, and the kind of the innermost exception.

    ``links`` and ``places`` run from the innermost cause outwards.
    """
    root, place = links[0], places[0]
    if root.type.endswith("Warning") or (not root.frames and not failure.frames):
        return []
    first = root.message.strip().splitlines()[0][:200] if root.message.strip() else ""
    told = f"{root.type}: {first}" if first else root.type or "a traceback without its last line"
    found = []
    if failure.fatal:
        found.append(Evidence("crash-traceback", "direct", f"the run ends with {told}", place, told))
        sign = _BY_TYPE.get(root.type.rsplit(".", 1)[-1])
        if sign:
            found.append(Evidence(sign, "direct", told, place, first))
    else:
        found.append(
            Evidence("traceback-not-fatal", "circumstantial", f"printed, and the run went on: {told}", place, told)
        )
    return found
