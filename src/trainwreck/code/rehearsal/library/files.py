"""Where something is written to and read from: paths, opened files and buffers that stand for the same place."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Node, Obj, Value

DEEP = 8
CONTENTS = frozenset(["getvalue", "getbuffer", "read", "read_bytes", "bytes", "bytearray", "memoryview"])
"""What gives all that a buffer or a file holds."""
BUFFERS = frozenset(["io.BytesIO", "io.StringIO", "_io.BytesIO", "tempfile.SpooledTemporaryFile"])
OPENERS = frozenset(["open", "gzip.open"])
"""What opens a file that its first argument names."""


def store(value: Value, depth: int = 0) -> Value:
    """What a file is told by: the path that was opened, and of a buffer that was filled with what another one held,
    that other one."""
    if depth > DEEP:
        return value
    if isinstance(value, Obj) and value.kind in BUFFERS and value.args and value.args[0] is not None:
        return store(value.args[0], depth + 1)
    if isinstance(value, Node) and value.inputs and (value.op in CONTENTS or value.op in OPENERS):
        return store(value.inputs[0], depth + 1)
    return value


def same(one: Value, other: Value) -> bool:
    """True if what was written to the one is read from the other."""
    return alike(store(one), store(other))


def alike(one: Value, other: Value, depth: int = 0) -> bool:
    """True for paths that are written alike: the same text, or made in the same way of the same parts."""
    if isinstance(one, str) or one is other:
        return one is other or bool(one == other)
    if isinstance(one, Node) and isinstance(other, Node) and one.op == other.op and one.inputs and depth < 5:
        same_length = len(one.inputs) == len(other.inputs)
        return same_length and all(alike(a, b, depth + 1) for a, b in zip(one.inputs, other.inputs, strict=False))
    return False
