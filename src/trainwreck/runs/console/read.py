"""Read console text: one pass, each shape of line understood once."""

from __future__ import annotations

import re
from dataclasses import replace

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, Run
from trainwreck.core.source import Source
from trainwreck.runs.console import words as w
from trainwreck.runs.console.events import BANNER, MAX_TEXT, events_in, may_tell
from trainwreck.runs.console.fast import MAX_PATTERNS, PROMOTE_AT, Fast
from trainwreck.runs.console.grids import Grids
from trainwreck.runs.console.learn import Plan, learn
from trainwreck.runs.console.place import Placer
from trainwreck.runs.console.settings import Settings
from trainwreck.runs.console.text import PREFIX, cut, rank_of, value, without_rank
from trainwreck.runs.console.windows import SPARSE, Windows

MAX_SHAPES = 20_000
MAX_MISSES = 3000
"""Shapes without a step after which the text is taken for prose: only lines that look like metrics or events are
looked at."""
MAX_NUMBERS = 400
"""A line with more numbers is data, not metrics."""
MAX_TOKENS = 200
"""Longer shapes get no pattern of their own."""
LONG = 4000
"""Of a longer line only the two ends are searched for events."""
MAX_CHARS = 8192
"""Of a longer line the grammar sees the beginning and the end; no line of metrics is longer, and no pattern may cost
more than a moment."""
_WIDE = re.compile(r"[^\S\n]{200,}")
"""Blanks that no table needs."""
CODE_BLOCK = 3
"""Lines of source text, less the other lines between them, from which on nothing without a step is believed."""
DOTTED = re.compile(r"\w ?\.{4,} ?\S")
"""A line of a printed configuration: ``lr .......... 0.1``."""
_ANNOUNCE = frozenset({"banner", "resumed", "restart", "traceback", "clean-exit", "nonzero-exit"})


class _Shape:
    """What is known of the lines of one shape: the plan for its numbers, whether it tells events, or a row of a
    table."""

    __slots__ = ("events", "grid", "hits", "plan", "rank")

    def __init__(
        self, plan: Plan | None = None, *, events: bool = False, grid: bool = False, rank: int | None = None
    ) -> None:
        self.plan, self.events, self.grid, self.rank = plan, events, grid, rank
        self.hits = 0


class ConsoleReader:
    """Takes lines, gives runs."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.settings = Settings(path)
        self.placer = Placer(path)
        self.grids = Grids(self.placer, self.settings)
        self._shapes: dict[object, _Shape] = {}
        self._fast: list[Fast] = []
        self._code = 0
        self._misses = 0
        self._in_traceback = False
        self._opening: str | None = None

    def line(self, number: int, text: str) -> None:
        """Take one line."""
        if len(text) > 1024:
            text = bounded(text)
        if self._in_traceback and self._of_traceback(text):
            return
        rank, text = without_rank(text)
        for place, fast in enumerate(self._fast):
            match = fast.match(text)
            if match is not None:
                if place:
                    self._fast[place - 1 : place + 1] = [fast, self._fast[place - 1]]
                if fast.plan is not None:
                    self.placer.take(fast.plan, match.groups(), number, fast.rank if rank is None else rank)
                return
        tokens = cut(text)
        if self._misses > MAX_MISSES and not _promising(text, tokens):
            return
        key: object = tuple(tokens[::2]) if len(tokens) > 1 else text
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._understand(tokens, text, number)
            if len(self._shapes) >= MAX_SHAPES:
                self._shapes.clear()
            self._shapes[key] = shape
            plain = shape.plan is None and not shape.events and len(text) < LONG
            if self._opening is None and plain and not self.placer.attempt.telling:
                self._opening = _wording(text)
            if shape.grid:
                return
        if self.placer.clock.announced and self._opens(text):
            self.placer.next()
        if not shape.events and not shape.grid:
            shape.hits += 1
            if shape.hits == PROMOTE_AT and len(tokens) < MAX_TOKENS and not self._opens(text):
                self._fast = [Fast(tokens[::2], shape.plan, shape.rank), *self._fast[: MAX_PATTERNS - 1]]
            if shape.plan is None:
                return
        if shape.grid:
            self.grids.take(_body(text), number)
            return
        if shape.events and self._tell(text, number, shape, tokens, shape.rank if rank is None else rank):
            return
        if shape.plan is not None:
            self.placer.take(shape.plan, tokens[1::2], number, shape.rank if rank is None else rank)

    @property
    def prose(self) -> bool:
        """True if hardly any line said something so far."""
        return self._misses > MAX_MISSES and not self.placer.attempt.telling and not self.placer.done

    def _opens(self, text: str) -> bool:
        """True if the program began with these words."""
        return self._opening is not None and _wording(text) == self._opening

    def finish(self) -> list[Run]:
        """The runs, one an attempt, oldest first."""
        self.grids.finish()
        attempts = self.placer.finish()
        return [a.run(k, len(attempts), self.settings) for k, a in enumerate(attempts, 1)]

    def _of_traceback(self, text: str) -> bool:
        """True for lines inside of a traceback and for the message that ends it."""
        body = _body(text)
        if (
            not body.strip()
            or body[:1] in " \t"
            or body.startswith(("File ", "The above", "During handling", "Traceback"))
        ):
            return "Traceback" not in body
        self._in_traceback = False
        return "Error:" in body[:120] and not any(word in body for word in ("ChildFailed", "CalledProcess", "Watchdog"))

    def _understand(self, tokens: list[str], text: str, number: int) -> _Shape:
        """Understand a shape that was not seen before."""
        rank = rank_of(text)
        searched = _ends(text)
        events = bool(events_in(searched)) or bool(BANNER.search(text[:200]))
        if len(tokens) > 2 * MAX_NUMBERS:
            return _Shape(events=events, rank=rank)
        body = _body(text)
        if self.grids.take(body, number):
            return _Shape(grid=True, rank=rank)
        if DOTTED.search(body):
            if self._code < CODE_BLOCK:
                self.settings.feed(body, number)
            return _Shape()
        if w.CODE.match(body):
            self._code = min(self._code + 1, 12)
            return _Shape(events=events, rank=rank)
        self._misses += 1
        low = text.lower()
        plan = None
        if low.lstrip()[:1] in "0123456789[(" or any(hint in low for hint in w.HINTS):
            plan = learn(tokens)
        if plan is not None and not plan.anchored:
            plan = self._without_step(plan, tokens, body, number)
        elif plan is None and self._code < CODE_BLOCK:
            self.settings.feed(body, number)
        elif plan is not None:
            self._code = max(self._code - 1, 0)
            self._misses -= 1
        return _Shape(plan, events=events, rank=rank)

    def _without_step(self, plan: Plan, tokens: list[str], body: str, number: int) -> Plan | None:
        """A line without a step: metrics at the place told last, a closing line, or settings."""
        if self._code >= CODE_BLOCK:
            return None
        measured = [p for p in plan.points if plan.summary or w.METRIC.search(p.name)]
        begun = self.placer.context is not None or self.placer.main_bar is not None
        if not begun and not (plan.quoted and measured and "loss" in body):
            self.settings.feed(body, number)
            for point in plan.points:
                if w.METRIC.search(point.name) or w.SETTING_KEYS.search(point.name):
                    self.settings.put(point.name, value(tokens[2 * point.at + 1]) * point.scale, number)
            return None
        if plan.quoted and not w.DICT.search(body):
            self.settings.feed(body, number)
            return None
        if plan.quoted or (measured and len(measured) * 2 >= len(plan.points)):
            return plan if measured else None
        self.settings.feed(body, number)
        return None

    def _tell(self, text: str, number: int, shape: _Shape, tokens: list[str], rank: int | None) -> bool:
        """Tell the events of a line; True if its numbers belong to the event and not to a curve."""
        attempt, context = self.placer.attempt, self.placer.context
        plan = shape.plan
        shown = _shown(text)
        where = Where("log", path=self.path, line=number, step=context[0] if context else None, rank=rank)
        kinds = set()
        if BANNER.search(text[:200]):
            if text.lstrip().startswith("Sender: LSF") and attempt.exit_code is not None:
                self.placer.next()
                attempt = self.placer.attempt
            attempt.tell(Event("banner", shown, where), number)
            kinds.add("banner")
        for rule, found in events_in(_ends(text)):
            told: object = value(found.rstrip(",.")) if found is not None else None
            if plan is not None and plan.aside and plan.points and rule.kind in ("resumed", "checkpoint-saved"):
                parts = {p.name: value(tokens[2 * p.at + 1]) * p.scale for p in plan.points}
                told = parts if plan.step is None else {"step": value(tokens[2 * plan.step + 1]), **parts}
            attempt.tell(Event(rule.kind, shown, where, told), number)
            kinds.add(rule.kind)
        self._in_traceback = self._in_traceback or "traceback" in kinds
        if kinds & _ANNOUNCE:
            self.placer.clock.announced = True
        if "resumed" in kinds and context is not None and attempt.store.count and context[0] not in attempt.seams:
            attempt.seams.append(context[0])
        return plan is None or plan.aside


def _body(text: str) -> str:
    """``text`` without time stamps, levels and ranks before the message."""
    if text.lstrip()[:1] in _TABLE:
        return text
    match = PREFIX.match(text)
    return text[match.end() :] if match else text


_TABLE = ("|", "│", "+", "-")
"""Frames of tables: what stands after them is no prefix."""


def _wording(text: str) -> str | None:
    """The words of a message without numbers, by which the first line of a program is known again; None if too few."""
    words = re.sub(r"[\d\W]+", " ", _body(text)).strip()
    return words if len(words) >= 10 else None


def _promising(text: str, tokens: list[str]) -> bool:
    """A cheap look, for texts in which hardly any line says something."""
    low = text[:LONG].lower().replace("info", "")  # a level, not an ``inf``
    if any(words.lower().rstrip(" :=|[(\"'").endswith(w.LIKELY_ENDS) for words in tokens[:-1:2]):
        return True
    return may_tell(low) and bool(events_in(_ends(text)) or BANNER.search(text[:200]))


def bounded(text: str) -> str:
    """``text`` with at most ``MAX_CHARS`` characters and no wide gaps."""
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS - 2048]} {text[-2047:]}"
    return _WIDE.sub(" " * 8, text)


def _ends(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:600]} {text[-1200:]}"


def _shown(text: str) -> str:
    """``text`` short enough to be quoted; of a long one the end, where a scheduler's message stands behind a progress
    bar."""
    text = text.strip()
    return text if len(text) <= MAX_TEXT else f"… {text[-MAX_TEXT:]}" if len(text) > LONG else text[:MAX_TEXT]


def read(source: Source) -> list[Run]:
    """All attempts that the text of ``source`` tells of; empty if it tells of none."""
    reader = ConsoleReader(source.name)
    take = reader.line
    if source.encoding != "utf-8":
        for number, text in source.lines():
            take(number, text)
        return reader.finish()
    clock = reader.placer.clock
    with source.open() as stream:
        windows = Windows(stream)
        told = 0
        for number, text in source.lines_of(windows.pieces()):
            if windows.skipped != told:
                told = windows.skipped
                clock.gaps += 1
            if number % 4096 == 0 and reader.prose:
                windows.dense = SPARSE
            take(number, text)
    runs = reader.finish()
    if not windows.skipped:
        return runs
    note = f"{windows.skipped >> 20} MB in the middle of the text were left out for metrics, evenly spaced"
    return [replace(run, notes=(*run.notes, note)) for run in runs]
