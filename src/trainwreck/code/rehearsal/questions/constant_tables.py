"""Tables that a module looks up and that hold the same number everywhere for ever: they were to be parameters."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, is_module
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards, users

SAME = frozenset(["zeros", "ones", "full"])
LOOKS_UP = frozenset(["getitem", "gather", "index_select", "embedding", "take"])


def never_learns(run: Rehearsing) -> Iterator[Answer]:
    """``self.table = torch.zeros(n, n)``, looked up for the data on the way to the loss: always 0, and no parameter."""
    learned = {id(n) for e in backwards(run) for n in ancestors(e.subject)}
    for owner in run.objects if learned else ():
        if not is_module(owner) or owner.cls is None:
            continue
        for name, table in owner.attributes.items():
            if not isinstance(table, Node) or table.op not in SAME or table.grad or table.place is None:
                continue
            used = users(run).get(id(table), ())
            asked = [u for u in used if u.op in LOOKS_UP and len(u.inputs) > 1 and _by_data(u, table)]
            written = any(u.op == "setitem" or u.options.get("inplace") for u in used)
            if any(id(u) in learned for u in asked) and not written:
                text = f"self.{name} is looked up and holds one number everywhere: it is no parameter, and never learns"
                yield Answer(table.place, text, tuple(u.place for u in asked[:1] if u.place is not None))
                return


def _by_data(user: Node, table: Node) -> bool:
    """True for a look-up by numbers that come from the data."""
    index = [i for item in user.inputs if item is not table for i in (item if isinstance(item, tuple) else (item,))]
    tables = [i for i in index if isinstance(i, Node) and i.shape.dims]
    return bool(tables) and not any(isinstance(i, Obj) for i in index if i in tables)


__all__ = ["never_learns"]
