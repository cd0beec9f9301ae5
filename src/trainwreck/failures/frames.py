"""Recognise frames, tell the user's files from installed ones, and find the local file that a frame speaks of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trainwreck.core.failure import Failure, Frame
from trainwreck.core.program import Program

FRAME = re.compile(r"^(?P<indent>[\s|>│└├+]*)File \"(?P<path>[^\"]{1,1000})\", line (?P<line>\d{1,9})(?P<rest>.*)$")

_LIBRARY = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages)[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?(?:t)?[/\\]"
    r"|[/\\](?:Python|python|anaconda|miniconda|conda)\w*[/\\][Ll]ib[/\\]"
    r"|^<(?!ipython-input|cell|input|stdin)"
    r"|[/\\](?:torch|torchvision|pytorch_lightning|lightning_fabric|transformers|accelerate|peft|trl|deepspeed|jax|jaxlib|flax|"
    r"tensorflow|keras|sklearn|numpy|pandas|datasets|ray|vllm)[/\\](?:_|nn|optim|autograd|utils|distributed|cuda|amp|fx|_C|"
    r"trainer|models?|generation|core|tune|air|train|trainers?|loops|strategies|src|python|linen|interpreters|arrow_dataset)\b"
)
_NOTEBOOK = re.compile(r"<ipython-input-|ipykernel_\d+|^Cell In|^Input In")


def is_user(path: str) -> bool:
    """False inside installed packages, the standard library and frozen or generated code."""
    if _NOTEBOOK.search(path):
        return True
    return _LIBRARY.search(path) is None


def parts(path: str) -> list[str]:
    """The components of a path as printed on any system, ``.`` and ``..`` left out."""
    return [p for p in re.split(r"[/\\]+", path) if p not in ("", ".", "..")]


class FileMap:
    """From the paths and quoted lines of a traceback to the local files of a program."""

    def __init__(self, program: Program | None) -> None:
        self._modules = program.modules if program else {}
        self._by_base: dict[str, list[str]] = {}
        for name in self._modules:
            base = parts(name)[-1:]
            self._by_base.setdefault(base[0] if base else name, []).append(name)

    def place(self, frame: Frame) -> tuple[str, int] | None:
        """The local file and line that ``frame`` stands for, None where nothing fits.

        The longest common path suffix decides, then the text of the quoted line; where the file was edited since, the
        line with the quoted text nearest to the printed number is taken.
        """
        text = frame.text.strip()
        wanted = parts(frame.path)
        names = self._by_base.get(wanted[-1], []) if wanted else []
        ranked = sorted(
            names, key=lambda name: (-self._fits(name, frame.line, text), -_common(parts(name), wanted), name)
        )
        for name in ranked:
            if is_user(frame.path) or _common(parts(name), wanted) >= min(3, len(parts(name))):
                return name, self._line(name, frame.line, text)
        if len(text) >= 12 and is_user(frame.path):
            return self._by_text(text, frame.line)
        return None

    def _fits(self, name: str, line: int, text: str) -> bool:
        lines = self._modules[name].lines
        return bool(text) and 1 <= line <= len(lines) and lines[line - 1].strip() == text

    def _line(self, name: str, line: int, text: str) -> int:
        lines = self._modules[name].lines
        if not text or self._fits(name, line, text):
            return line
        same = [n for n, content in enumerate(lines, 1) if content.strip() == text]
        return min(same, key=lambda n: abs(n - line)) if same else line

    def _by_text(self, text: str, line: int) -> tuple[str, int] | None:
        found = [
            (name, n)
            for name, module in self._modules.items()
            for n, content in enumerate(module.lines, 1)
            if content.strip() == text
        ]
        if len({name for name, _ in found}) != 1:
            return None
        return min(found, key=lambda place: abs(place[1] - line))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        count += 1
    return count


def localise(failure: Failure, files: FileMap) -> Failure:
    """``failure`` with each frame's path and line replaced by the local ones where a local file fits.

    A frame that lies in the program counts as the user's, wherever it was installed.
    """
    frames = []
    for frame in failure.frames:
        place = files.place(frame)
        frames.append(frame if place is None else replace(frame, path=place[0], line=place[1], user=True))
    cause = localise(failure.cause, files) if failure.cause is not None else None
    return replace(failure, frames=tuple(frames), cause=cause)
