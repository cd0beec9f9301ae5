"""Turn lines into failures: a state machine per writer, so that ranks may interleave. Bounded memory, never raises."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace

from trainwreck.core.failure import Failure, Frame
from trainwreck.failures import native
from trainwreck.failures.frames import FRAME, is_user
from trainwreck.failures.prefix import Body, strip
from trainwreck.failures.shapes import (
    BARE,
    CARETS,
    CAUSE,
    CONTEXT_LINES,
    CONTINUES,
    DURING,
    EXCEPTION,
    HEADER,
    LOG,
    NB_ARROW,
    NB_FRAMES,
    NOTEBOOK_HEADER,
    PYTEST,
    WARNING,
    WORKER,
    Open,
    Writer,
    depth,
)

MAX_FRAMES = 400
OURS = "trainwreck/record/inside/"  # the recorder's own threads
MAX_FAILURES = 200
MAX_MESSAGE_LINES = 60
MAX_MESSAGE_CHARS = 8000
MAX_LINE = 4000
MAX_NOISE = 25
"""Foreign lines tolerated inside one traceback (progress bars, prints of other threads) before it is given up."""
MAX_DEPTH = 30
"""Exceptions of one chain, and tracebacks within one another, that are followed; then a new failure begins."""
CHAIN_GAP = 8
"""Lines that may stand between an exception and the sentence that chains it (JAX prints five)."""


class Parser:
    """Feed it lines in order; ``failures`` are the complete ones, outermost of each chain, oldest first.

    Of more than MAX_FAILURES the first and the last half are kept; ``dropped`` counts the others.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._writers: dict[str, Writer] = {}
        self.failures: list[Failure] = []
        self.dropped = 0
        self.busy = False
        """True while a traceback is open or one was announced: every line has to be fed."""
        self._warned: set[tuple[str, str, int]] = set()
        self._recent: deque[str] = deque(maxlen=CONTEXT_LINES)

    def context(self, lines: list[str]) -> None:
        """Lines that were passed over since the last one fed."""
        self._recent.extend(text[:400] for text in lines[-CONTEXT_LINES:])

    def feed(self, number: int, text: str) -> None:
        """Take one line. Lines that nothing in ``scan`` finds worth a look may be left out while not ``busy``."""
        text = text[:MAX_LINE]
        if "\\n" in text and "Traceback (most recent call last)" in text:
            for part in text.replace('\\"', '"').split("\\n"):
                self._line(number, part)
            self.close()
        else:
            self._line(number, text)
        self.busy = any(writer.stack or writer.chain_to for writer in self._writers.values())

    def _line(self, number: int, text: str) -> None:
        body = strip(text)
        key = body.stream
        writer = self._writers.get(key)
        if writer is None:
            if len(self._writers) > 512:
                self.close()
                self._writers.clear()
            writer = self._writers[key] = Writer()
        if writer.stack:
            usual = writer.stack[0].cut
            if body.stamped and usual < body.cut and text[usual : body.cut].isspace():
                # The level was padded: what goes beyond the header's prefix is indentation.
                body = replace(body, text=text[usual:], cut=usual)
            self._continue(writer, number, body)
        else:
            self._begin(writer, number, body)
        if not writer.stack:
            self._recent.append(text[:400])

    def close(self) -> None:
        """The input ends: finish what is open."""
        for writer in self._writers.values():
            while writer.stack:
                self._finish(writer)
            self._release(writer)

    # -- opening

    def _begin(self, writer: Writer, number: int, body: Body) -> None:
        text, rank = body.text, body.rank
        if CAUSE.search(text) or DURING.search(text):
            near = writer.last is not None and number - writer.last_line <= CHAIN_GAP
            if near and writer.last is not None and depth(writer.last) < MAX_DEPTH:
                self._take_back(writer.last)
                writer.chain_to, writer.last = writer.last, None
                writer.last_line = number
            return
        if writer.chain_to is not None and number - writer.last_line > CHAIN_GAP:
            self._release(writer)
        header = HEADER.match(text)
        if header:
            self._start(writer, Open(len(header["indent"]), number, rank), body)
            return
        notebook = NOTEBOOK_HEADER.match(text)
        if notebook:
            self._start(writer, Open(0, number, rank, notebook=notebook["type"]), body)
            return
        frame = FRAME.match(text)
        if frame:
            self._start(writer, Open(max(0, len(frame["indent"]) - 2), number, rank), body)
            self._frame(writer.stack[-1], frame)
            return
        if text.startswith("Exception ignored in"):
            writer.ignored = True
            return
        dump = native.DUMP_HEADER.search(text)
        if dump:
            opened = Open(0, number, rank, dump=True)
            opened.type, opened.message = native.dump_name(text), [text.strip()]
            self._start(writer, opened, body)
            return
        warned = WARNING.match(text)
        if warned:
            place = Frame(warned["path"], int(warned["line"]), "", "", is_user(warned["path"]))
            opened = Open(0, number, rank, frames=[place], type=warned["type"], message=[warned["message"]])
            self._start(writer, opened, body)
            return
        test = PYTEST.match(text)
        if test and writer.last is not None and not writer.last.frames and writer.last.type == test["type"]:
            self._add_frame(writer, Frame(test["path"], int(test["line"]), "", "", is_user(test["path"])))
            return
        found = native.failure(text)
        if found is not None:
            self._start(writer, Open(-1, number, rank, type=found[0], message=[found[1]], short=True), body)
            return
        bare = BARE.search(text)
        if bare and len(text) < 2000:
            self._start(writer, Open(-1, number, rank, type=bare["type"], message=[bare["message"]], short=True), body)

    def _start(self, writer: Writer, opened: Open, body: Body) -> None:
        opened.stamped, opened.cut = body.stamped, body.cut
        opened.ignored, writer.ignored = writer.ignored, False
        opened.context = tuple(self._recent)
        opened.chained, writer.chain_to = writer.chain_to, None
        if opened.chained is None:
            self._release(writer)
        opened.end = opened.line
        writer.stack.append(opened)

    # -- going on

    def _continue(self, writer: Writer, number: int, body: Body) -> None:
        opened = writer.stack[-1]
        if opened.type and not opened.dump:
            self._in_message(writer, opened, number, body)
        else:
            self._in_frames(writer, opened, number, body)

    def _in_frames(self, writer: Writer, opened: Open, number: int, body: Body) -> None:
        text = body.text
        stripped = text.strip(" \t|│")
        if opened.notebook and self._notebook_line(opened, text):
            opened.end = number
            return
        frame = FRAME.match(text)
        if frame and len(opened.frames) < MAX_FRAMES:
            self._frame(opened, frame)
            opened.end = number
            return
        if HEADER.match(text) or NOTEBOOK_HEADER.match(text):
            self._finish(writer)
            self._line_again(writer, number, body)
            return
        if not stripped:
            if opened.dump and opened.frames and all(OURS in frame.path for frame in opened.frames):
                opened.frames.clear()  # the recorder's own thread
            elif opened.dump and opened.frames:
                self._finish(writer)
            else:
                self._tolerate(writer, opened)
            return
        if opened.frames and CARETS.match(text):
            self._mark(opened, text)
            opened.end = number
            return
        if stripped.startswith(("[Previous line repeated", "...", "<...", "└", "│", "├", "+-----")):
            return
        indent = len(text) - len(text.lstrip(" \t|│>"))
        if opened.frames and indent > opened.indent + 2 and not opened.notebook:
            if not opened.frames[-1].text and not opened.dump:
                opened.raw = text
                last = opened.frames[-1]
                opened.frames[-1] = Frame(last.path, last.line, last.function, stripped[:500], last.user)
            opened.end = number
            return
        exception = EXCEPTION.match(text[:MAX_LINE])
        if exception and not opened.dump and self._is_exception(opened, exception, indent):
            opened.type, opened.message = exception["type"], [exception["message"] or ""]
            opened.size, opened.end = len(text), number
            return
        if CAUSE.search(text) or DURING.search(text):
            self._finish(writer)
            self._line_again(writer, number, body)
            return
        if opened.dump and opened.frames and indent == 0 and not text.startswith(("Thread", "Current")):
            self._finish(writer)
            return
        self._tolerate(writer, opened)

    def _is_exception(self, opened: Open, found: re.Match[str], indent: int) -> bool:
        name = found["type"]
        if opened.notebook:
            return name.split(".")[-1] == opened.notebook.split(".")[-1]
        if BARE.search(found[0]):
            return True
        if indent > opened.indent + 1 or not opened.frames:
            return False
        last = name.split("(")[0].rsplit(".", 1)[-1]
        return last.lstrip("_")[:1].isupper() and (last.isidentifier()) and not LOG.match(found[0])

    def _tolerate(self, writer: Writer, opened: Open) -> None:
        opened.noise += 1
        if opened.noise > MAX_NOISE:
            self._finish(writer)

    def _frame(self, opened: Open, found: re.Match[str]) -> None:
        rest = found["rest"].strip()
        function = rest.removeprefix(",").strip().removeprefix("in ").strip() if rest else ""
        path = found["path"]
        opened.frames.append(Frame(path, int(found["line"]), function[:200], "", is_user(path)))
        opened.raw = ""

    def _mark(self, opened: Open, text: str) -> None:
        columns = [i for i, c in enumerate(text) if c in "^~"]
        marked = opened.raw[columns[0] : columns[-1] + 1].strip()
        last = opened.frames[-1]
        opened.frames[-1] = Frame(last.path, last.line, last.function, last.text, last.user, marked)

    def _notebook_line(self, opened: Open, text: str) -> bool:
        for pattern in NB_FRAMES:
            found = pattern.match(text)
            if found:
                groups = found.groupdict()
                line = int(groups.get("line") or 0)
                path = groups["path"]
                opened.frames.append(Frame(path, line, groups.get("function") or "", "", is_user(path)))
                return True
        arrow = NB_ARROW.match(text)
        if arrow and opened.frames:
            last = opened.frames[-1]
            opened.frames[-1] = Frame(
                last.path, int(arrow["line"]), last.function, arrow["text"].strip()[:500], last.user
            )
            return True
        return bool(re.match(r"^\s+(?:\d+ |\.\.\.|\(\.\.\.\))", text))

    def _in_message(self, writer: Writer, opened: Open, number: int, body: Body) -> None:
        text = body.text
        deep = len(writer.stack) >= MAX_DEPTH
        header = None if deep else HEADER.match(text)
        frame = None if deep else FRAME.match(text)
        bottom = opened.message[-1].strip() if opened.message else ""
        warning = opened.type.endswith("Warning")
        if header and (header["kind"] == "Original " or bottom in ('"""', "'''") or WORKER.search(opened.message[0])):
            writer.stack.append(Open(len(header["indent"]), number, opened.rank, end=number))
            return
        if warning:
            if not frame and text[:1] in " \t" and text.strip() and opened.frames and not opened.frames[0].text:
                place = opened.frames[0]
                opened.frames[0] = Frame(place.path, place.line, "", text.strip()[:500], place.user)
                opened.end = number
                self._finish(writer)
                return
            self._finish(writer)
            self._line_again(writer, number, body)
            return
        if frame and not header:
            inner = Open(max(0, len(frame["indent"]) - 2), number, opened.rank, end=number)
            self._frame(inner, frame)
            writer.stack.append(inner)
            return
        stripped = text.strip()
        closes = stripped in ('"""', "'''") and any(
            o.message and o.message[-1].strip() in ('"""', "'''") for o in writer.stack[:-1]
        )
        if header or closes or CAUSE.search(text) or DURING.search(text) or NOTEBOOK_HEADER.match(text):
            while writer.stack:
                self._finish(writer)
            if not closes:
                self._line_again(writer, number, body)
            return
        if not stripped:
            opened.blank = True
            return
        goes_on = CONTINUES.match(text) is not None
        new = LOG.match(text) is not None or native.failure(text) is not None or BARE.match(text) is not None
        foreign = (body.stamped and not opened.stamped) or opened.short or opened.blank or new
        if opened.type.endswith("ChildFailedError") and sum(line.startswith("====") for line in opened.message) < 2:
            foreign = False
        if (foreign and not goes_on) or len(opened.message) >= MAX_MESSAGE_LINES:
            while writer.stack:
                self._finish(writer)
            self._line_again(writer, number, body)
            return
        opened.blank = False
        if opened.size < MAX_MESSAGE_CHARS:
            opened.message.append(text[:1000])
            opened.size += len(text)
        opened.end = number

    def _line_again(self, writer: Writer, number: int, body: Body) -> None:
        if writer.stack:
            self._continue(writer, number, body)
        else:
            self._begin(writer, number, body)

    # -- closing

    def _finish(self, writer: Writer) -> None:
        opened = writer.stack.pop()
        frames = tuple(reversed(opened.frames)) if opened.dump else tuple(opened.frames)
        if not opened.type and not frames:
            if opened.chained is not None:
                self._keep(opened.chained)
            return
        message = "\n".join(opened.message).strip()
        values = native.child_values(message) if "ChildFailedError" in opened.type else {}
        worker = WORKER.search(message[:300])
        failure = Failure(
            type=opened.type or "",
            message=message,
            frames=frames,
            cause=opened.inner or opened.chained,
            path=self.path,
            line=opened.line,
            end_line=opened.end,
            rank=opened.rank if opened.rank is not None else values.get("rank"),
            worker=int(worker[1]) if worker else None,
            fatal=not opened.ignored and not opened.type.endswith("Warning"),
            context=opened.context,
            values=values,
        )
        if writer.stack:
            writer.stack[-1].inner = failure
            writer.stack[-1].end = opened.end
            if opened.type:
                self._finish(writer)
            return
        writer.last, writer.last_line = failure, opened.end
        self._keep(failure)

    def _keep(self, failure: Failure) -> None:
        if failure.type.endswith("Warning"):
            key = (failure.type, failure.message[:80], failure.frames[-1].line if failure.frames else 0)
            if key in self._warned:
                return
            if len(self._warned) < MAX_FAILURES:
                self._warned.add(key)
        self.failures.append(failure)
        if len(self.failures) > MAX_FAILURES:
            half = MAX_FAILURES // 2
            self.dropped += 1
            del self.failures[half]

    def _take_back(self, failure: Failure) -> None:
        for place in range(len(self.failures) - 1, -1, -1):
            if self.failures[place] is failure:
                del self.failures[place]
                return

    def _add_frame(self, writer: Writer, frame: Frame) -> None:
        if writer.last is not None:
            self._take_back(writer.last)
            writer.last = replace(writer.last, frames=(frame,))
            self._keep(writer.last)

    def _release(self, writer: Writer) -> None:
        """The announced next exception did not come: the one that waited for it stands for itself."""
        if writer.chain_to is not None:
            self._keep(writer.chain_to)
            writer.chain_to = None
