"""TensorBoard event files: TFRecord frames with protocol-buffer events, scalars of both generations.

The decoder is ours and reads every point; the one of TensorBoard keeps 10,000 a tag by random choice, so that short
spikes can vanish. Checksums are not verified; a record that does not fit its frame ends the reading. Images, graphs,
histograms and texts are passed over.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterator
from typing import BinaryIO

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, Run
from trainwreck.core.source import Source
from trainwreck.runs.places import tensorboard_split
from trainwreck.runs.readers._wire import fields, signed, text, varint
from trainwreck.runs.recorder import RunRecorder
from trainwreck.runs.roles import in_context, role_of

FORMAT = "tensorboard-events"
ORDER = 5
STRUCTURED = True

MAX_RECORD = 64 << 20
"""A larger record is an image, a graph or damage."""
BLOCK = 4 << 20
FLUSH = 200_000
_HEADER = struct.Struct("<QI")
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
_NAME_TIME = re.compile(r"tfevents\.(\d{9,11})\.")
_SPLIT_DIRECTORY = re.compile(r"^(train|training|val|valid|validation|eval|evaluation|test|dev)$", re.IGNORECASE)
_NUMBERS = {1: ("f", 4), 2: ("d", 8), 3: ("i", 4), 9: ("q", 8)}


def sniff(source: Source) -> bool:
    head = source.head
    if b"brain.Event:" in head[:64]:
        return True
    if "tfevents" not in source.basename or len(head) < 16:
        return False
    length = _HEADER.unpack_from(head)[0]
    return 0 < length < MAX_RECORD and head[12:13] in (b"\x09", b"\x10", b"\x1a", b"\x2a")


def read(source: Source) -> list[Run]:
    """One run, several if the step starts again within the file; one without series if no scalar was written.

    The notes ``started TIME`` and ``ended TIME`` carry Unix seconds, for the assembly. Raises ValueError if the first
    record is damaged.
    """
    scalars = _Scalars(source.name)
    notes: list[str] = []
    cut = ""
    first = last = 0.0
    count = 0
    for record in _records(source):
        if isinstance(record, str):
            cut = record
            break
        count += 1
        try:
            wall = scalars.event(record)
        except (IndexError, ValueError, struct.error):
            cut = "a damaged record"
            break
        if wall:
            first = first or wall
            last = wall
    if not count:
        raise ValueError("its first record is damaged")
    named = _NAME_TIME.search(source.basename)
    started = first or (float(named.group(1)) if named else 0.0)
    notes.append(f"started {started:.3f}")
    notes.append(f"ended {last or started:.3f}")
    if cut:
        notes.append(f"the file ends within a record ({cut}): the writer was stopped or is still writing")
    return scalars.runs(notes)


class _Scalars:
    """Collects the scalars of one file and hands them on in large pieces."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.recorder = RunRecorder(path, FORMAT, numbered=False)
        self.prefix = _split_prefix(path)
        self.events: list[Event] = []
        self._pending: dict[bytes, tuple[array[float], array[float], array[int]]] = {}
        self._last: dict[bytes, float] = {}
        self._count = 0
        self._rowwise = False
        self._names: dict[bytes, str] = {}

    def event(self, data: bytes) -> float:
        """Take one Event; returns its wall time. Raises IndexError or ValueError where it is damaged."""
        wall, step = 0.0, 0
        at, end = 0, len(data)
        while at < end:
            key = data[at]
            at += 1
            if key == 0x09:
                wall = _DOUBLE.unpack_from(data, at)[0]
                at += 8
            elif key == 0x10:
                step = data[at]
                at += 1
                if step >= 0x80:
                    step, at = varint(data, at - 1)
                    step = signed(step)
            elif key == 0x2A:
                length = data[at]
                at += 1
                if length >= 0x80:
                    length, at = varint(data, at - 1)
                self._summary(data, at, at + length, step)
                at += length
            else:
                for number, kind, value in fields(data, at - 1):
                    if number == 2 and kind == 0:
                        step = signed(value)
                    elif number == 5 and isinstance(value, bytes):
                        self._summary(value, 0, len(value), step)
                    elif number == 7 and isinstance(value, bytes):
                        self._session(value, step)
                break
        return float(wall)

    def _summary(self, data: bytes, at: int, end: int, step: int) -> None:
        while at < end:
            if data[at] != 0x0A:
                return
            length, at = varint(data, at + 1)
            stop = at + length
            # The common shape: tag, then a float, and nothing else.
            if data[at] == 0x0A:
                size = data[at + 1]
                value_at = at + 2 + size
                if size < 0x80 and value_at + 5 == stop and data[value_at] == 0x15:
                    self._add(data[at + 2 : value_at], step, _FLOAT.unpack_from(data, value_at + 1)[0])
                    at = stop
                    continue
            self._value(data, at, stop, step)
            at = stop

    def _value(self, data: bytes, at: int, end: int, step: int) -> None:
        tag, number, tensor, plugin = b"", None, None, b""
        for field, kind, value in fields(data, at, end):
            if field == 1 and isinstance(value, bytes):
                tag = value
            elif field == 2 and kind == 5 and isinstance(value, bytes):
                number = float(_FLOAT.unpack(value)[0])
            elif field == 8 and isinstance(value, bytes):
                tensor = value
            elif field == 9 and isinstance(value, bytes):
                plugin = value
        if number is None and tensor is not None and (b"scalars" in plugin or (not plugin and tag in self._pending)):
            number = _tensor(tensor)
        if tag and number is not None:
            self._add(tag, step, number)

    def _add(self, tag: bytes, step: int, value: float) -> None:
        found = self._pending.get(tag)
        if found is None:
            found = self._pending[tag] = (array("d"), array("d"), array("q"))
        found[0].append(step)
        found[1].append(value)
        self._count += 1
        found[2].append(self._count)
        if self._count % FLUSH == 0:
            self._flush()

    def _session(self, value: bytes, step: int) -> None:
        """SessionLog: START says that the writer was opened again at this step."""
        status = next((v for f, k, v in fields(value) if f == 1 and k == 0), 0)
        if status == 1 and step > 0:
            where = Where("log", path=self.path, step=float(step))
            self.events.append(Event("session-start", f"the writer was opened again at step {step}", where, step))

    def _flush(self) -> None:
        if not self._rowwise:
            self._rowwise = any(
                steps and (steps[0] < self._last.get(tag, steps[0]) or not all(map(float.__le__, steps, steps[1:])))
                for tag, (steps, _, _) in self._pending.items()
            )
        if self._rowwise:
            self._flush_rows()
        else:
            for tag, (steps, values, order) in self._pending.items():
                if steps:
                    self.recorder.block(self._name(tag), steps, values, order)
        for tag, (steps, _, _) in self._pending.items():
            if steps:
                self._last[tag] = steps[-1]
            self._pending[tag] = (array("d"), array("d"), array("q"))

    def _flush_rows(self) -> None:
        rows = sorted(
            (place, tag, step, value)
            for tag, (steps, values, order) in self._pending.items()
            for step, value, place in zip(steps, values, order, strict=True)
        )
        for place, tag, step, value in rows:
            self.recorder.row((self._name(tag),), (value,), step, place)

    def _name(self, tag: bytes) -> str:
        name = self._names.get(tag)
        if name is None:
            name = self._names[tag] = self.prefix + text(tag)
        return name

    def runs(self, notes: list[str]) -> list[Run]:
        self._flush()
        roles = in_context(self._names.values())
        if self.prefix.startswith(("val", "eval", "test", "dev")):
            roles |= {name: role_of("val/" + name[len(self.prefix) :]) for name in self._names.values()}
        runs = self.recorder.finish(roles=roles, notes=notes)
        if not runs:
            return [Run(self.path, FORMAT, {}, notes=notes, files=(self.path,), events=self.events)]
        return runs


def _split_prefix(path: str) -> str:
    """Keras and tf.estimator write training and validation under the same tags into directories of these names.

    ``add_scalars("Loss", {"train": .., "val": ..})`` of PyTorch makes a directory ``Loss_train`` and ``Loss_val``.
    """
    folder = path.split("/")[-2] if "/" in path else ""
    if _SPLIT_DIRECTORY.match(folder):
        return f"{folder.lower()}/"
    split = tensorboard_split(folder)
    return f"{split}/" if split else ""


def _tensor(data: bytes) -> float | None:
    """The number in a TensorProto that holds exactly one."""
    dtype, content, found = 0, b"", None
    for field, kind, value in fields(data):
        if field == 1 and isinstance(value, int):
            dtype = value
        elif field == 4 and isinstance(value, bytes):
            content = value
        elif field == 5 and isinstance(value, bytes):
            found = float(_FLOAT.unpack(value[:4])[0]) if len(value) >= 4 else None
        elif field == 6 and isinstance(value, bytes):
            found = float(_DOUBLE.unpack(value[:8])[0]) if len(value) >= 8 else None
        elif field in (7, 10):
            if isinstance(value, int):
                found = float(signed(value))
            elif kind == 2 and value:
                found = float(signed(varint(value, 0)[0]))
    if found is None and dtype in _NUMBERS:
        code, size = _NUMBERS[dtype]
        if len(content) == size:
            found = float(struct.unpack(f"<{code}", content)[0])
    return found


def _records(source: Source) -> Iterator[bytes | str]:
    """The payload of each record; at a damaged or cut-off one a text saying so, then the end."""
    with source.open() as stream:
        buffer, at, offset = b"", 0, 0
        while True:
            if len(buffer) - at < 12:
                buffer, at = buffer[at:] + stream.read(BLOCK), 0
                if not buffer:
                    return
                if len(buffer) < 12:
                    yield f"{len(buffer)} bytes at the end"
                    return
            length = _HEADER.unpack_from(buffer, at)[0]
            if length > MAX_RECORD:
                yield f"a record of {length} bytes at byte {offset}"
                return
            need = length + 16
            if len(buffer) - at < need:
                buffer, at = buffer[at:] + _read(stream, max(BLOCK, need)), 0
                if len(buffer) < need:
                    yield f"cut off at byte {offset}"
                    return
            yield buffer[at + 12 : at + 12 + length]
            at += need
            offset += need


def _read(stream: BinaryIO, size: int) -> bytes:
    parts = []
    while size > 0:
        part = stream.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
