"""Lists of samples: is the one that is judged a slice of the one that is trained on?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Obj, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.scopes import Scope

SEEN = pattern(r"train|fit|seen|probe|sanity|overfit|few|sub|small|warm|show|demo", re.IGNORECASE)
"""Names of parts of the training data that somebody looks at on purpose."""


def judged_is_slice(run: Rehearsing) -> Iterator[Answer]:
    """``test = train[:200]`` of the very list that the training loader is given as a whole, and nothing else judges."""
    learned = _loaders([e.subject for e in backwards(run)])
    judged = _loaders([a for e in run.tape if e.name == "forward" and not e.grad_mode for a in e.args])
    asked = [o for o in judged.values() if id(o) not in learned]
    for mine in learned.values():
        found = [(o, at) for o in asked if (at := _slice_of(o, mine)) is not None]
        if found and len(found) == len(asked):
            other, node = found[0]
            scope = other.place[1] if other.place is not None else None
            if scope is not None and mine.place is not None:
                text = "what the network is judged on is a part of the list that it is trained on"
                yield Answer((node, scope), text, tuple(p for p in (mine.place, other.place) if p is not None))
                return


def _loaders(values: list[Value]) -> dict[int, Obj]:
    found: dict[int, Obj] = {}
    for value in values:
        for node in ancestors(value, through=lambda n: n.op != "param"):
            if node.op == "batch" and node.owner is not None and node.owner.name == "DataLoader":
                found[id(node.owner)] = node.owner
    return found


def _data(loader: Obj) -> tuple[str, Scope] | None:
    """The name of the list that a loader is given."""
    call = loader.place[0] if loader.place is not None else None
    given = (
        [*call.args[:1], *(k.value for k in call.keywords if k.arg == "dataset")] if isinstance(call, ast.Call) else []
    )
    name = given[0] if given else None
    return (name.id, loader.place[1]) if isinstance(name, ast.Name) and loader.place is not None else None


def _slice_of(other: Obj, mine: Obj) -> ast.AST | None:
    """Where the one list is cut out of the other, which nothing changes later."""
    one, two = _data(other), _data(mine)
    if one is None or two is None or one[1] is not two[1] or SEEN.search(one[0]):
        return None
    bindings = {name: [b for b in one[1].bindings.get(name, ()) if b.value is not None] for name in (one[0], two[0])}
    cut = bindings[one[0]][0].value if len(bindings[one[0]]) == 1 else None
    if len(bindings[two[0]]) != 1 or not isinstance(cut, ast.Subscript) or not isinstance(cut.slice, ast.Slice):
        return None
    changed = (n for n in one[1].nodes if isinstance(n, ast.Delete))
    whole = isinstance(cut.value, ast.Name) and cut.value.id == two[0]
    return cut if whole and not any(True for _ in changed) else None
