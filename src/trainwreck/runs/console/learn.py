"""Decide, once per shape of line, which of its numbers are steps, totals and metrics.

The skeleton of a line is its words with ``N`` for each number. Where a step stands is told by ``ANCHORS`` (line
grammars as data: groups are numbers of the skeleton); every other number that has a name before it is a metric.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainwreck.core.row import Row
from trainwreck.runs.console import words as w
from trainwreck.runs.console.grammars import ANCHORS, TIMES, TOTAL
from trainwreck.runs.console.names import bare_name, canonical, counter_rank, key_of, phase_of
from trainwreck.runs.console.objective import UNNAMED
from trainwreck.runs.console.text import prefix_numbers

N = w.N


class Point(Row):
    """One metric of a line: which number, under what name, times what."""

    at: int
    name: str
    scale: float


@dataclass(slots=True)
class Plan:
    """What the numbers of a line of this shape are. Indices count the numbers of the whole line; None: not there.

    ``step``/``epoch`` with their totals; ``key`` names the counter; ``points`` are the metrics. ``bar``: the counter
    is a progress bar. ``lead``: the step is a bare number at the start, to be believed only if it keeps rising.
    ``summary``: a closing line. ``aside``: a line that tells something beside the curve. ``phase``: "", "val" or
    "test". ``evaluated``: all of its metrics are of a validation. ``ratios``: metrics printed as a part of a number
    (correct/all) and that number. ``label``: other words that open the line and tell it from similar ones.
    """

    points: tuple[Point, ...] = ()
    step: int | None = None
    step_total: int | None = None
    epoch: int | None = None
    epoch_total: int | None = None
    fixed_step: float | None = None
    fixed_epoch: float | None = None
    step_scale: float = 1.0
    key: str = ""
    bar: bool = False
    lead: bool = False
    keras: bool = False
    summary: bool = False
    aside: bool = False
    phase: str = ""
    label: str = ""
    quoted: bool = False
    evaluated: bool = False
    rank: int | None = None
    ratios: tuple[tuple[str, int], ...] = ()

    @property
    def closing(self) -> bool:
        """True if the values are ends of the run."""
        return self.summary and not self.keras

    @property
    def anchored(self) -> bool:
        """True if the line says where in the run it stands."""
        return not (self.step is None and self.epoch is None and self.fixed_step is None and self.fixed_epoch is None)


_FIXED = re.compile(r"(?<![a-z])(?P<kind>epoch|ep|step|iter|iteration)[_\-#]?0*(?P<at>\d{1,9})(?![\w.])", re.IGNORECASE)
_LEAD = re.compile(rf"^\W{{0,6}}{N}[:,.|]?\s+\(?[^\W\d]")
_NAMELESS = re.compile(rf"^\W{{0,3}}(?P<name>[A-Za-z][\w\-]{{0,30}})\W{{1,4}}{N}[\s:,|]+{N}\s*$")


def learn(tokens: list[str]) -> Plan | None:
    """The plan for lines of the shape of ``tokens``, None if no metric and no step is in them."""
    numbers = tokens[1::2]
    if not numbers:
        return _header(tokens[0])
    skip, message = prefix_numbers(tokens)
    frags = tokens[0::2]
    skeleton = _message_skeleton(tokens, skip, message)
    plan = Plan()
    used: set[int] = set()
    end = _structure(skeleton, skip, plan, used)
    for pattern in TIMES:
        for match in pattern.finditer(skeleton):
            first = skip + skeleton.count(N, 0, match.start())
            span = set(range(first, first + match.group().count(N)))
            if plan.step not in span and plan.epoch not in span:
                used |= span
    named = _named(frags, numbers, skip, skeleton, used)
    _counters(plan, named, frags, used, numbers)
    _fixed(plan, message)
    _lead(plan, skeleton, skip, numbers, used, named)
    lead_words = skeleton.split(N, 1)[0] if end == 0 else skeleton[:end].split(N, 1)[0]
    plan.quoted = bool(re.search(r"""["'][\w/ .@-]+["']\s*:""", message))
    head = skeleton[: skeleton.find(N) if N in skeleton else None]
    plan.summary = (
        bool(w.SUMMARY.search(head) and not (plan.step is not None and not w.SUMMARY.match(head.strip(" =*-#>:."))))
        and not plan.bar
    )
    if (
        plan.epoch is not None
        and re.search(r"\bend\b|\bdone\b|\bfinished\b", head, re.IGNORECASE)
        and "epoch" in skeleton.lower()
    ):
        plan.summary = False
    plan.aside = bool(w.ASIDE.search(head)) and not plan.quoted and not plan.bar
    _points(plan, named, used, frags, lead_words, skeleton)
    if not plan.points and not (plan.anchored and (plan.aside or plan.bar or _bare_counter(skeleton))):
        return None
    return plan


def _bare_counter(skeleton: str) -> bool:
    """True if a line without metrics is little more than its counter, as a heading is ("Epoch 3/10",
    "[batch=10/500]:")."""
    letters = _COUNTER_WORDS.sub("", skeleton)
    return len(re.sub(r"[^A-Za-z]", "", letters)) <= 12


_COUNTER_WORDS = re.compile(
    rf"\b(?:epochs?|steps?|iter\w*|batch|{w.TRAIN_WORDS}|{w.EVAL_WORDS}|{w.TEST_WORDS}|of|start\w*|begin\w*)\b",
    re.IGNORECASE,
)


def _message_skeleton(tokens: list[str], skip: int, message: str) -> str:
    """The message with ``N`` for its numbers. Numbers cut by the prefix stay as they are."""
    parts = [token if index % 2 == 0 else N for index, token in enumerate(tokens)]
    skeleton = "".join(parts[2 * skip :])
    plain = "".join(tokens[2 * skip :])
    drop = len(plain) - len(message)
    return skeleton[drop:] if 0 <= drop <= len(parts[2 * skip]) else skeleton


def _structure(skeleton: str, skip: int, plan: Plan, used: set[int]) -> int:
    """Fill the counters that the structure of the line tells; returns where the structure begins (0 if none)."""
    for kind, pattern in ANCHORS:
        match = pattern.search(skeleton)
        if match is None:
            continue
        groups = match.groupdict()
        key = groups.pop("key", None)
        for name in groups:
            if groups[name] is not None:
                index = skip + skeleton.count(N, 0, match.start(name))
                setattr(plan, name, index)
        first = skip + skeleton.count(N, 0, match.start())
        used |= set(range(first, first + match.group().count(N)))
        if key in ("epoch", "ep"):
            plan.epoch, plan.epoch_total, plan.step, plan.step_total = plan.step, plan.step_total, None, None
        plan.key, plan.bar, plan.keras = kind, kind == "bar", kind == "keras"
        return match.start()
    return 0


class _Named(Row):
    at: int
    key: str
    explicit: bool
    scale: float
    before: str


def _named(frags: list[str], numbers: list[str], skip: int, skeleton: str, used: set[int]) -> list[_Named]:
    """Every unused number that has a name before it and nothing glued to it behind."""
    found = []
    parts = skeleton.split(N)
    for index in range(skip, len(numbers)):
        if index in used:
            continue
        before = parts[index - skip] if index - skip < len(parts) else frags[index]
        unit = w.UNIT.match(frags[index + 1])
        if unit is None:
            continue
        if index > skip:
            glued = w.UNIT.match(before)
            before = before[glued.end() :] if glued and glued.end() else before
        name = key_of(before)
        if name is None:
            continue
        big = unit.group("big")
        scale = 0.01 if unit.group("scale") else {"k": 1e3, "K": 1e3, "M": 1e6}.get(big or "", 1.0)
        found.append(_Named(index, name[0], name[1], scale, before))
    return found


_OF = re.compile(r"^(?:(?:the )?(?:end|start|summary|results?) )?(?:of|for) (?:the )?", re.IGNORECASE)


def _counters(plan: Plan, named: list[_Named], frags: list[str], used: set[int], numbers: list[str]) -> None:
    """Fill the counters that are named, the most global ones, and mark them and their totals as used."""
    best: dict[str, tuple[int, int]] = {}
    for item in named:
        found = counter_rank(_OF.sub("", item.key))  # "end of epoch 3"
        if found is None or not (_whole(numbers[item.at], found[0]) or item.scale >= 1e3):
            continue
        if len(item.key) == 1 and not (item.explicit and item.at == named[0].at):
            continue
        kind, rank = found
        used.add(item.at)
        if (plan.step if kind == "step" else plan.epoch) is not None:
            continue
        if kind not in best or rank < best[kind][0]:
            best[kind] = (rank, item.at)
            if kind == "step":
                plan.step_scale = item.scale
                plan.key = plan.key or canonical(item.key)
    for kind, (_, index) in best.items():
        total = index + 1 if index + 1 < len(numbers) and TOTAL.match(frags[index + 1]) else None
        if kind == "step":
            plan.step, plan.step_total = index, total
        else:
            plan.epoch, plan.epoch_total = index, total
        if total is not None:
            used.add(total)
    if plan.epoch is not None and plan.step is None:
        index = (plan.epoch_total or plan.epoch) + 1
        # "Epoch: 3 [640/60000 (1%)]": the bracket after an epoch is a place inside of it.
        if (
            index + 1 < len(numbers)
            and re.match(r"^\s*\]?\s*[\[(]\s*$", frags[index])
            and TOTAL.match(frags[index + 1])
        ):
            plan.step, plan.step_total = index, index + 1
            used |= {index, index + 1}


def _whole(number: str, kind: str) -> bool:
    if kind == "epoch":
        return number[:1] != "-" and number[-1:].isdigit()
    return number.replace(",", "").isdigit()


def _fixed(plan: Plan, message: str) -> None:
    """Counters glued to their word ("epoch12", "step_300"): digits of the words, the same for all lines of this
    shape."""
    if plan.anchored:
        return
    match = _FIXED.search(message)
    if match is not None and match.start() < 40 and "/" not in message[max(match.start() - 1, 0) : match.start()]:
        at = float(match.group("at"))
        if match.group("kind").lower() in ("epoch", "ep"):
            plan.fixed_epoch = at
        else:
            plan.fixed_step = at


def _lead(plan: Plan, skeleton: str, skip: int, numbers: list[str], used: set[int], named: list[_Named]) -> None:
    """A bare number before everything else may be the step."""
    if plan.anchored or skip >= len(numbers):
        return
    nameless = _NAMELESS.match(skeleton)
    if (
        nameless is not None
        and numbers[skip].isdigit()
        and not numbers[skip + 1].isdigit()
        and skip not in {n.at for n in named[1:]}
    ):
        plan.step, plan.lead, plan.key = skip, True, "lead"
        plan.label = nameless.group("name")
        plan.points = (Point(skip + 1, nameless.group("name") + UNNAMED, 1.0),)
        used |= {skip, skip + 1}
    elif (
        _LEAD.match(skeleton)
        and numbers[skip].isdigit()
        and len(numbers) > skip + 1
        and skip not in used
        and not re.search(r"[,;].", skeleton.split(N)[1].lstrip(", "))
    ):
        plan.step, plan.lead, plan.key = skip, True, "lead"
        used.add(skip)


_PART = re.compile(r"acc|correct|hits?$|recall|precision", re.IGNORECASE)
_JUNK = frozenset(bare_name(k) for k in w.JUNK_KEYS)
_WEAK_JUNK = frozenset(bare_name(k) for k in w.WEAK_JUNK_KEYS)
_SUMMARY_FRONT = re.compile(rf"^(?:{w.SUMMARY.pattern}[\s:\-]*)+", re.IGNORECASE)


def _points(plan: Plan, named: list[_Named], used: set[int], frags: list[str], lead_words: str, skeleton: str) -> None:
    """Name the metrics, with the phase that stands before them."""
    phase = phase_of(lead_words)
    points, seen = list(plan.points), {p.name for p in plan.points}
    ratios: list[tuple[str, int]] = []
    loss_line = "loss" in skeleton.lower()
    for item in named:
        key = item.key
        if bare_name(key) == "rank":
            plan.rank = item.at
        cut = item.before.rfind(key)
        told = phase_of(item.before[:cut]) if cut > 0 and item.before is not named[0].before else ""
        phase = told or phase
        if item.at in used or bare_name(key) in _JUNK or (bare_name(key) in _WEAK_JUNK and not item.explicit):
            continue
        if plan.summary:
            key = _SUMMARY_FRONT.sub("", key) or key
        if len(key) == 1 and not item.explicit and not plan.anchored:
            continue
        if re.fullmatch(rf"(?:{w.TRAIN_WORDS}|{w.EVAL_WORDS}|{w.TEST_WORDS})", key, re.IGNORECASE):
            if not loss_line and not item.explicit:
                continue
            key = f"{key} loss" if loss_line else key
        name = key if phase in ("", "train") or w.HAS_PHASE.search(key) else f"{phase}/{key}"
        while name in seen and len(seen) < 64:
            name = f"{name}'"
        if name in seen:
            continue
        seen.add(name)
        if _PART.search(key) and item.at + 1 < len(frags) - 1 and TOTAL.match(frags[item.at + 1]):
            ratios.append((name, item.at + 1))
        points.append(Point(item.at, name, item.scale))
    plan.phase = (
        phase if phase in ("val", "test") and all(re.match(r"val|test|dev|eval", p.name, re.I) for p in points) else ""
    )
    plan.points, plan.ratios = tuple(points), tuple(ratios)
    plan.evaluated = bool(points) and all(w.EVALUATED.match(p.name) for p in points)
    label = re.sub(r"[^\w ]+", " ", lead_words).strip().lower()
    words = [
        x
        for x in label.split()
        if not w.PHASE.fullmatch(x) and x != "train_inner" and counter_rank(x) is None and not x.isdigit()
    ]
    if (
        not plan.label
        and plan.anchored
        and 0 < len(words) <= 2
        and not (points and points[0].name.lower().startswith(words[0]))
    ):
        plan.label = " ".join(words)


def _header(text: str) -> Plan | None:
    """A line without numbers of its own may still open an epoch ("epoch_3:")."""
    plan = Plan()
    if len(text) < 60:
        _fixed(plan, text)
    return plan if plan.anchored else None
