"""One entry of the catalogue as text."""

from __future__ import annotations

from trainwreck.catalogue.load import Catalogue, catalogue
from trainwreck.core.errors import UnknownId


def explain(name: str, known: Catalogue | None = None) -> str:
    """The entry of this id or alias as plain text. Raises UnknownId, naming the nearest ids."""
    from trainwreck.catalogue.search import nearest

    known = known or catalogue()
    mode = known.mode(name)
    if mode is None:
        close = ", ".join(nearest(known, name))
        raise UnknownId(f"no such id: {name}" + (f"; did you mean {close}?" if close else ""))
    return f"{mode.id}: {mode.title}\n\n{mode.mechanism}\n"
