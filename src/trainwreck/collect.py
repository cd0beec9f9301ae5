"""From what the user named to sources: files, directories, compressed files, standard input, remote URIs.

Nothing is fetched unless the user named a URI and fsspec is installed. A directory is walked with limits, links are
followed once, and whatever can't be read becomes one sentence instead of an exception.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from trainwreck.core.evidence import Unreadable
from trainwreck.core.source import HEAD_BYTES, Source, from_bytes

MAX_FILES = 5000
MAX_DEPTH = 12
SKIPPED_DIRECTORIES = frozenset(
    {".git", "__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints", ".cache"}
)
_URI = re.compile(r"^[a-z][a-z0-9+.-]+://")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".npy", ".npz", ".h5", ".onnx", ".gguf", ".msgpack")
_MEDIA = (".png", ".jpg", ".jpeg", ".gif", ".mp4", ".wav", ".flac", ".pdf", ".ico", ".woff", ".woff2", ".ttf")
_OTHER = (".pyc", ".so", ".o", ".a", ".zip", ".tar", ".whl", ".parquet", ".arrow", ".lock", ".db", ".sqlite")


@dataclass
class Collected:
    """What was found. ``sources`` in a stable order; ``unreadable`` says why something is missing from them;
    ``named`` are the names of sources that the user asked for one by one."""

    sources: list[Source] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    skipped: list[str] = field(default_factory=list)


def collect(paths: Iterable[str | Path], stdin: bytes | None = None) -> Collected:
    """Open everything under ``paths``. ``-`` is standard input (``stdin`` replaces it, for the API and the tests)."""
    found = Collected()
    for item in paths:
        text = str(item)
        if text == "-":
            data = stdin if stdin is not None else sys.stdin.buffer.read()
            found.sources.append(from_bytes("<stdin>", data))
            found.named.add("<stdin>")
        elif _URI.match(text):
            _remote(text, found)
        else:
            _local(Path(item), found)
    return found


def _local(path: Path, found: Collected) -> None:
    name = display(path)
    if path.is_symlink() and not path.exists():
        reason = "is a link that leads nowhere or into itself; point to the file itself"
        found.unreadable.append(Unreadable(name, reason))
    elif not path.exists():
        found.unreadable.append(Unreadable(name, "no such file or directory; check the spelling"))
    elif path.is_dir():
        before = len(found.sources) + len(found.unreadable) + len(found.skipped)
        _walk(path, found)
        if len(found.sources) + len(found.unreadable) + len(found.skipped) == before:
            reason = "the directory is empty; name the directory that holds the logs or checkpoints of the run"
            found.unreadable.append(Unreadable(name, reason))
    else:
        found.named.add(name)
        _file(path, found)


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
        directories[:] = sorted(d for d in directories if d not in SKIPPED_DIRECTORIES)
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
            if path.is_symlink() and not path.exists():
                continue
            _file(path, found)


def _file(path: Path, found: Collected) -> None:
    name = display(path)
    try:
        if not path.is_file():
            found.unreadable.append(Unreadable(name, "is no regular file; name a log, a metrics file or a directory"))
            return
        size = path.stat().st_size
        opener = opener_for(path.name, lambda: open(path, "rb"))  # noqa: SIM115
        with opener() as stream:
            head = stream.read(HEAD_BYTES)
    except (OSError, EOFError, lzma.LZMAError, ValueError, ImportError) as problem:
        found.unreadable.append(Unreadable(name, f"{_why(problem)}; check the file and its permissions"))
        return
    found.sources.append(Source(name, opener, head, size))


def opener_for(name: str, plain: Callable[[], BinaryIO]) -> Callable[[], BinaryIO]:
    """``plain``, or a decompressing version of it. The content decides; the suffix is not asked."""
    with plain() as stream:
        magic = stream.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return lambda: cast(BinaryIO, gzip.GzipFile(fileobj=plain()))
    if magic.startswith(b"BZh"):
        return lambda: cast(BinaryIO, bz2.BZ2File(plain()))
    if magic.startswith(b"\xfd7zXZ\x00"):
        return lambda: cast(BinaryIO, lzma.LZMAFile(plain()))
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        return lambda: _zstd(plain)
    return plain


def _zstd(plain: Callable[[], BinaryIO]) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise ImportError("is zstd-compressed; install trainwreck[zstd] or decompress it first") from None
    return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(plain(), read_across_frames=True))


def _remote(uri: str, found: Collected) -> None:
    found.named.add(uri)
    try:
        import fsspec
    except ImportError:
        reason = "remote paths need fsspec; install trainwreck[remote] or copy the files here first"
        found.unreadable.append(Unreadable(uri, reason))
        return
    try:
        system, path = fsspec.core.url_to_fs(uri)
        scheme = uri.split("://", 1)[0]
        members = sorted(system.find(path)) if system.isdir(path) else [path]
        for member in members[:MAX_FILES]:
            opener = opener_for(member, lambda member=member: system.open(member, "rb"))  # type: ignore[misc]
            with opener() as stream:
                head = stream.read(HEAD_BYTES)
            found.sources.append(Source(f"{scheme}://{member.lstrip('/')}", opener, head, system.size(member)))
    except Exception as problem:  # any backend may raise anything of its own
        found.unreadable.append(Unreadable(uri, f"could not be opened ({_why(problem)}); check the address"))


def display(path: Path) -> str:
    """``path`` relative to the working directory where it lies below it, posix, never with ``./``."""
    try:
        return path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except (ValueError, OSError, RuntimeError):
        return path.as_posix()


def _why(problem: BaseException) -> str:
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return text[:1].lower() + text[1:].rstrip(".")


def texts(sources: Iterable[Source]) -> Iterator[Source]:
    """Those sources that look like text."""
    return (source for source in sources if not source.is_binary)
