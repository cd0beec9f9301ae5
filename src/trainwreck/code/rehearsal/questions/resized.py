"""Images whose size is changed for the evaluation, and not for the training, or to another size there."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.evaluation import inputs_of, made_by
from trainwreck.code.rehearsal.questions.paths import Path
from trainwreck.code.rehearsal.questions.roles import users

RESIZES = frozenset(["interpolate", "resize", "upsample", "adaptive_avg_pool2d", "avg_pool2d"])

Size = tuple[str, object]
"""What is asked for: by which argument, and how much; or by how many times the size grows."""


def resized_there(run: Rehearsing) -> Iterator[Answer]:
    """What one line makes is given to a network in another size than it was trained with."""
    train, held = inputs_of(run)
    taught: dict[tuple[int, int], set[tuple[Size, ...]]] = {}
    growths = {_growths(path) for _, path in train} - {None}
    for event, path in train:
        taught.setdefault((id(event.subject), made_by(path)), set()).add(tuple(s for s, _ in _sizes(path)))
    asked: dict[tuple[int, int], set[tuple[Size, ...]]] = {}
    for event, path in held:
        asked.setdefault((id(event.subject), made_by(path)), set()).add(tuple(s for s, _ in _sizes(path)))
    told: set[int] = set()
    for event, path in held:
        known = taught.get((id(event.subject), made_by(path)))
        mine = _sizes(path)
        if not known or not mine or any(size is None for _, size in (s for ways in known for s in ways)):
            continue
        if any(size[1] is None for size, _ in mine) or tuple(s for s, _ in mine) in known:
            continue
        if not _judged(run, event) or _growths(path) in growths:
            continue  # or larger images, of which each part is as large as it was
        if known & asked[(id(event.subject), made_by(path))]:
            continue  # several sizes are tried, that of the training among them
        node = mine[-1][1]
        if node.place is not None and id(node.place[0]) not in told and len(known) == 1:
            told.add(id(node.place[0]))
            text = "the size of these images is changed here, and the network learned from such of another size"
            yield Answer(node.place, text, (event.place,) if event.place is not None else ())


JUDGES = frozenset(["eq", "ne", "sub", "cross_entropy", "mse_loss", "l1_loss", "binary_cross_entropy_with_logits"])
MAX_STEPS = 5


def _judged(run: Rehearsing, event: Event) -> bool:
    """True where the result is held against something: not only shown."""
    table = users(run)
    level = [n for n in (event.result,) if isinstance(n, Node)]
    for _ in range(MAX_STEPS):
        level = [user for node in level for user in table.get(id(node), ())]
        if any(node.op in JUDGES for node in level):
            return True
    return False


def _sizes(path: Path) -> list[tuple[Size, Node]]:
    """The changes of size on the way, with what they ask for."""
    return [((node.op, _asked(node)), node) for node in path.nodes if node.op in RESIZES]


def _growths(path: Path) -> tuple[float, ...] | None:
    """By how many times the last axis grows at each change of size; None where that isn't known of all."""
    found: list[float] = []
    for _, node in _sizes(path):
        before = node.inputs[0].shape.dims[-1:] if node.inputs and isinstance(node.inputs[0], Node) else ()
        ends = [d for d in (*before, *node.shape.dims[-1:]) if isinstance(d, int) and d > 0]
        if len(ends) < 2:
            return None
        found.append(ends[1] / ends[0])
    return tuple(found)


def _asked(node: Node) -> object:
    """The size or the factor that is asked for, where it is written out."""
    for name, at in (("size", 1), ("scale_factor", 2), ("output_size", 1), ("kernel_size", 1)):
        value: Value = node.get(name, at)
        if isinstance(value, Items):
            value = tuple(value.items)
        parts = value if isinstance(value, tuple) else (value,)
        if value is not None and all(isinstance(p, int | float) for p in parts):
            return (name, value)
    return None


__all__ = ["resized_there"]
