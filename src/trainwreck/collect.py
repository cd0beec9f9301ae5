"""From what the user named to sources: files, directories, compressed files, standard input, remote URIs.

Nothing is fetched unless the user named a URI and fsspec is installed. A directory is walked with limits, links are
followed once, and whatever can't be read becomes one sentence instead of an exception.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from trainwreck.core.evidence import Unreadable
from trainwreck.core.source import HEAD_BYTES, RECORDING_MAGIC, Source

MAX_FILES = 5000
MAX_DEPTH = 12
SKIPPED_DIRECTORIES = frozenset(
    [
        ".git",
        "__pycache__",
        ".venv",
        "venv",
        "node_modules",
        ".mypy_cache",
        ".ruff_cache",
        ".cache",
        ".ipynb_checkpoints",
    ]
)
_URI = re.compile(r"^[a-z][a-z0-9+.-]+://")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".npy", ".npz", ".h5", ".onnx", ".gguf", ".msgpack")
_MEDIA = (".png", ".jpg", ".jpeg", ".gif", ".mp4", ".wav", ".flac", ".pdf", ".ico", ".woff", ".woff2", ".ttf")
_NOISE = re.compile(r"(^|/)wandb/(.*/)?(logs/)?debug(-internal|-core|-cli\.\w+)?\.log$")
"""W&B's logs about itself: megabytes with tracebacks of their own, never a cause."""
STDIN_IN_MEMORY = 64 << 20
"""Bytes of standard input kept in memory; more goes through a temporary file."""
_OTHER = tuple(".pyc .so .o .a .zip .tar .whl .parquet .arrow .lock .db .sqlite .twr.new".split())


@dataclass
class Collected:
    """What was found. ``sources`` in a stable order; ``unreadable`` says why something is missing from them;
    ``named`` are the names of sources that the user asked for one by one."""

    sources: list[Source] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    skipped: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set, repr=False)


def collect(paths: Iterable[str | Path], stdin: bytes | None = None) -> Collected:
    """Open everything under ``paths``. ``-`` is standard input (``stdin`` replaces it, for the API and the tests)."""
    found = Collected()
    for text in dict.fromkeys(map(str, paths)):
        if not text:
            found.unreadable.append(Unreadable("''", "is an empty path; is a variable of the shell unset?"))
        elif text == "-":
            _standard_input(stdin, found)
        elif _URI.match(text):
            _remote(text, found)
        else:
            try:
                _local(Path(text), found)
            except (OSError, ValueError) as problem:
                reason = f"{_why(problem)}; check the path and its permissions"
                found.unreadable.append(Unreadable(text.replace("\0", ""), reason))
    return found


def _standard_input(given: bytes | None, found: Collected) -> None:
    found.named.add("<stdin>")
    if given is None and sys.stdin is None:
        found.unreadable.append(Unreadable("<stdin>", "standard input is closed; pipe a log into it"))
        return
    stream = io.BytesIO(given) if given is not None else sys.stdin.buffer
    data = stream.read(STDIN_IN_MEMORY)
    if not data:
        found.unreadable.append(Unreadable("<stdin>", "nothing came in; pipe a log into it or paste an error"))
        return
    if len(data) < STDIN_IN_MEMORY:
        opener, size = (lambda: cast(BinaryIO, io.BytesIO(data))), len(data)
    else:
        import tempfile

        spool = tempfile.NamedTemporaryFile(prefix="trainwreck-stdin-")  # noqa: SIM115
        while data:
            spool.write(data)
            data = stream.read(STDIN_IN_MEMORY)
        spool.flush()
        # The opener holds the temporary file, which vanishes with the source.
        opener, size = (lambda: _open(Path(spool.name))), spool.tell()
    _add("<stdin>", opener, size, found)


def _local(path: Path, found: Collected) -> None:
    name = display(path)
    if path.is_symlink() and not path.exists():
        reason = "is a link that leads nowhere or into itself; point to the file itself"
        found.unreadable.append(Unreadable(name, reason))
    elif not path.exists():
        found.unreadable.append(Unreadable(name, "no such file or directory; check the spelling"))
    elif path.is_dir():
        before, skipped = len(found.sources) + len(found.unreadable), len(found.skipped)
        _walk(path, found)
        if len(found.sources) + len(found.unreadable) == before:
            left = len(found.skipped) - skipped
            what = f"holds no text and no metrics, only {left} binary or empty files" if left else "is empty"
            reason = f"the directory {what}; name the directory that holds the logs or checkpoints of the run"
            found.unreadable.append(Unreadable(name, reason))
    else:
        found.named.add(name)
        _file(path, found, named=True)


def _walk(top: Path, found: Collected) -> None:
    seen: set[tuple[int, int]] = set()
    count = 0

    def refused(problem: OSError) -> None:
        where = display(Path(problem.filename)) if problem.filename else display(top)
        found.unreadable.append(Unreadable(where, f"{_why(problem)}; check its permissions"))

    for root, directories, names in os.walk(top, followlinks=True, onerror=refused):
        here = Path(root)
        try:
            status = here.stat()
        except OSError:
            directories.clear()
            continue
        depth = len(here.relative_to(top).parts)
        if (status.st_dev, status.st_ino) in seen or depth > MAX_DEPTH:
            directories.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        directories[:] = sorted(d for d in directories if d not in SKIPPED_DIRECTORIES and not _inside(here / d, top))
        for name in sorted(names):
            path = here / name
            if name.lower().endswith((*_WEIGHTS, *_MEDIA, *_OTHER)):
                found.skipped.append(display(path))
                continue
            if count >= MAX_FILES:
                reason = f"holds more than {MAX_FILES} files, the rest was left out; name a directory further down"
                found.unreadable.append(Unreadable(display(top), reason))
                return
            count += 1
            if path.is_symlink() and (not path.exists() or _inside(path, top)):
                continue
            _file(path, found)


def _inside(path: Path, top: Path) -> bool:
    """True for a link whose target is met anyway, under its own name."""
    if not path.is_symlink():
        return False
    try:
        return path.resolve().is_relative_to(top.resolve())
    except (OSError, RuntimeError):
        return True


def _file(path: Path, found: Collected, named: bool = False) -> None:
    """``named``: asked for by name, so that an empty or unknown file is worth a sentence."""
    name = display(path)
    try:
        if not path.is_file():
            found.unreadable.append(Unreadable(name, "is no regular file; name a log, a metrics file or a directory"))
            return
        size = path.stat().st_size
    except OSError as problem:
        found.unreadable.append(Unreadable(name, f"{_why(problem)}; check the file and its permissions"))
        return
    if not size:
        if named:
            found.unreadable.append(Unreadable(name, "the file is empty; was the run started at all?"))
        else:
            found.skipped.append(name)
        return
    if not named and _NOISE.search(path.as_posix()):
        found.skipped.append(name)
        return
    _add(name, lambda: _open(path), size, found, named)


def _open(path: Path) -> BinaryIO:
    return open(path, "rb")


def _add(name: str, plain: Callable[[], BinaryIO], size: int | None, found: Collected, named: bool = True) -> None:
    """Look at the beginning and keep it as a source, or say in one sentence why it can't be read."""
    try:
        opener = opener_for(plain)
        with opener() as stream:
            head = _beginning(stream)
    except Exception as problem:  # each decompressor and each remote store has errors of its own
        found.unreadable.append(Unreadable(name, f"{_why(problem)}; check the file and its permissions"))
        return
    if not head:
        reason = "is damaged from its first byte on; decompress it by hand to see more"
        found.unreadable.append(Unreadable(name, reason))
        return
    if name in found.taken:
        return  # named twice, as x and ./x, or with its directory
    found.taken.add(name)
    source = Source(name, opener, head, size)
    recording = head.startswith(RECORDING_MAGIC) and source.basename.endswith(".twr")  # not one half rewritten
    known = "tfevents" in source.basename or head.startswith(b":W&B") or recording
    if not source.is_binary or known:
        found.sources.append(source)
    elif named:
        reason = "binary content of an unknown kind; give a text log or a known metrics format"
        found.unreadable.append(Unreadable(name, reason))
    else:
        found.skipped.append(name)


def _beginning(stream: BinaryIO) -> bytes:
    """The first ``HEAD_BYTES``, however small the pieces in which they come."""
    head = b""
    while len(head) < HEAD_BYTES:
        piece = stream.read(HEAD_BYTES - len(head))
        if not piece:
            break
        head += piece
    return head


def opener_for(plain: Callable[[], BinaryIO]) -> Callable[[], BinaryIO]:
    """``plain``, or a decompressing version of it. The content decides; the suffix is not asked."""
    with plain() as stream:
        magic = stream.read(6)
    if magic.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")):
        return lambda: cast(BinaryIO, io.BufferedReader(_Decompressed(plain(), magic), 1 << 18))
    return plain


class _Decompressed(io.RawIOBase):
    """A decompressed stream that ends where the compressed one is cut off or damaged, instead of raising."""

    def __init__(self, raw: BinaryIO, magic: bytes) -> None:
        self._raw = raw
        self._stream = _decompressor(raw, magic)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            data = self._stream.read1(len(buffer)) if hasattr(self._stream, "read1") else self._stream.read(len(buffer))
        except Exception:  # EOFError, zlib.error, LZMAError, ZstdError: what came before is still good
            return 0
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._raw.close()
        super().close()


def _decompressor(raw: BinaryIO, magic: bytes) -> BinaryIO:
    if magic.startswith(b"\x1f\x8b"):
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if magic.startswith(b"BZh"):
        import bz2

        return cast(BinaryIO, bz2.BZ2File(raw))
    if magic.startswith(b"\xfd7zXZ"):
        import lzma

        return cast(BinaryIO, lzma.LZMAFile(raw))
    try:
        import zstandard
    except ImportError:
        raise ImportError("is zstd-compressed; install trainwreck[zstd] or decompress it first") from None
    return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))


def _remote(uri: str, found: Collected) -> None:
    found.named.add(uri)
    try:
        import fsspec.core
    except ImportError:
        reason = "remote paths need fsspec; install trainwreck[remote] or copy the files here first"
        found.unreadable.append(Unreadable(uri, reason))
        return
    try:
        system, path = fsspec.core.url_to_fs(uri)
        scheme = uri.split("://", 1)[0]
        members = sorted(system.find(path)) if system.isdir(path) else [path]
        if not members:
            found.unreadable.append(Unreadable(uri, "holds no file; check the address"))
        for member in members[:MAX_FILES]:
            name = f"{scheme}://{member.lstrip('/')}"
            if len(members) > 1 and name.lower().endswith((*_WEIGHTS, *_MEDIA, *_OTHER)):
                found.skipped.append(name)
                continue
            _add(name, _remote_opener(system, member), system.size(member), found, named=len(members) == 1)
    except Exception as problem:  # any backend may raise anything of its own
        found.unreadable.append(Unreadable(uri, f"could not be opened ({_why(problem)}); check the address"))


def _remote_opener(system: Any, member: str) -> Callable[[], BinaryIO]:
    return lambda: cast(BinaryIO, system.open(member, "rb"))


def display(path: Path) -> str:
    """``path`` relative to the working directory where it lies below it, posix, never with ``./``."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except (ValueError, OSError, RuntimeError):
        return path.as_posix()


def _why(problem: BaseException) -> str:
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return (text[:1].lower() + text[1:] if text[1:2].islower() else text).rstrip(".")


def texts(sources: Iterable[Source]) -> Iterator[Source]:
    """Those sources that look like text."""
    return (source for source in sources if not source.is_binary)
