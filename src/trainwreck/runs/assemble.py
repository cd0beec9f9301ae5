"""Put runs together: several files of one run, attempts, ranks, seams of a resume, settings beside it.

Readers know one file each; here is decided what belongs together:

- Checkpoints of one run hold prefixes of one history; what is no prefix is another run in the same directory.
- Event files of one directory are starts: a later one goes on (a seam), starts again (an attempt), holds other metrics
  of the same run, or was written at the same time by another process (a rank).
- Files that tell the same values (trainer_state, event file, console) are one run.
- ``version_N`` and W&B run directories side by side are starts of one thing: attempts, the last one is judged.
- Settings attach to the runs in and below their directory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, Run, Series, Setting
from trainwreck.runs.merge import join, same_run, union
from trainwreck.runs.places import directory, home, rank_in, start_of, tensorboard_home

_INTERNAL = re.compile(r"(started|ended) [\d.]+$")
_FOLD = re.compile(r"\bfolds?\b|\bcross.?validation\b", re.IGNORECASE)
MAX_COMPARED = 150
"""Runs that are compared with one another; more are a survey, and stay apart."""
MANY = 3
SAME_START_SECONDS = 120.0
"""Processes of one job open their event files within about this time; a judgement."""
EARLY_ROWS, EARLY_SHARE = 5, 0.02
"""Within the first rows the clock may leap or be set back: compilation, first evaluation, warm-up left out of it."""
MIN_CLOCK = 6
"""Rows from which on a clock can be said to run evenly."""
CLOCK_GAP = 100.0
"""A gap this many times the usual one between two rows is a stop and a resume, not a slow evaluation; a judgement."""


def assemble(parts: Sequence[Run]) -> list[Run]:
    """Runs from the parts that the readers found."""
    settings = [part for part in parts if part.format == "settings"]
    rest = [part for part in parts if part.format != "settings"]
    rest = _together(rest, "trainwreck-recording", key=lambda run: run.path.rsplit(".", 1)[0], put=lambda g: [union(g)])
    runs = _together(rest, "mlflow", key=lambda run: run.path, put=lambda group: [union(group)])
    runs = _together(runs, "hf-trainer-state", key=lambda run: home(run.path), put=_checkpoints)
    runs = _together(runs, "tensorboard-events", key=lambda run: tensorboard_home(run.path), put=_event_files)
    runs = _together(runs, "dvclive-tsv", key=lambda run: home(run.path), put=_one_metric_files)
    runs = _tellings(runs)
    runs = _results(runs)
    runs = _folds(_starts(runs))
    runs = [_with_end(_with_settings(_with_rank(run), settings)) for run in runs]
    runs = [replace(run, notes=[n for n in run.notes if not _INTERNAL.match(n)]) for run in runs]
    return [_with_clock(run) for run in runs if run.series or run.events or run.settings or _ended(run)]


def _ended(run: Run) -> bool:
    return run.outcome not in ("unknown", "unfinished") or run.exit_code is not None


def _together(
    runs: Sequence[Run], form: str, key: Callable[[Run], str], put: Callable[[list[Run]], list[Run]]
) -> list[Run]:
    """Replace the runs of one format, group by group, by what ``put`` makes of each group; the order stays."""
    mine = [run for run in runs if run.format == form]
    if len(mine) < 2 and form != "tensorboard-events":
        return list(runs)
    groups: dict[str, list[Run]] = {}
    for run in mine:
        groups.setdefault(key(run), []).append(run)
    done: dict[int, list[Run]] = {id(group[0]): put(group) for group in groups.values()}
    return [item for run in runs for item in ([run] if run.format != form else done.get(id(run), ()))]


# checkpoints of a Trainer


def _checkpoints(states: list[Run]) -> list[Run]:
    """The longest history of each run; shorter ones are its prefixes, or what a resume has replaced, or other runs."""
    kept: list[Run] = []
    for state in sorted(states, key=lambda run: -_points(run)):
        for index, longer in enumerate(kept):
            common, equal = _common_start(longer, state)
            if common and equal == common:
                kept[index] = replace(longer, files=[*longer.files, *state.files])
                break
            if equal >= MANY:
                kept[index] = _superseded(longer, state, equal)
                break
        else:
            kept.append(state)
    if len(kept) < 2:
        return kept
    where = directory(kept[0].path) or "."
    text = f"{len(kept)} different histories lie in one directory: they are not parts of one run"
    event = Event("two-runs-one-dir", text, Where("log", path=kept[1].path), len(kept))
    note = f"one of {len(kept)} different runs in {where}"
    return [replace(run, events=[*run.events, event], notes=[*run.notes, note]) for run in kept]


def _points(run: Run) -> int:
    return sum(len(series) for series in run.series.values())


def _history(run: Run) -> list[tuple[float, float]]:
    series = next(iter([*run.by_role("loss", "rl-loss", "eval-loss"), *run.series.values()]), None)
    return list(zip(series.steps, series.values, strict=True)) if series is not None else []


def _common_start(longer: Run, shorter: Run) -> tuple[int, int]:
    """(points of the shorter history, how many of them stand at the same place in the longer one)."""
    a, b = _history(longer), _history(shorter)
    equal = 0
    for one, other in zip(a, b, strict=False):
        if one[0] != other[0] or (one[1] != other[1] and one[1] == one[1]):
            break
        equal += 1
    return len(b), equal


def _superseded(run: Run, older: Run, equal: int) -> Run:
    history = _history(run)
    step = history[equal][0] if equal < len(history) else history[-1][0]
    text = f"a checkpoint holds another continuation from step {step:g} on: the run was resumed before it"
    event = Event("resume-seam", text, Where("metric", path=older.path, step=step), {"step": step})
    return replace(run, events=[*run.events, event], seams=sorted({*run.seams, step}), files=[*run.files, *older.files])


# event files of one directory


def _event_files(files: list[Run]) -> list[Run]:
    """Attempts out of event files, in the order of their start; starts without any scalar are only counted."""
    full = [run for run in files if run.series]
    empty = len(files) - len(full)
    if not full:
        path = files[0].path
        text = f"{empty} event files without a single scalar: the start was given up before the first step"
        event = Event("aborted-starts", text, Where("log", path=path), empty)
        return [replace(files[0], events=[*files[0].events, event], files=[run.path for run in files])]
    done: list[Run] = []
    for run in sorted(full, key=lambda run: (_time(run, "started"), run.path, run.attempt)):
        previous = done[-1] if done else None
        joined = _continued(previous, run) if previous is not None and previous.path != run.path else None
        if joined is None:
            done.append(run)
        else:
            done[-1] = joined
    done = [replace(run, attempt=i + 1, of_attempts=len(done)) for i, run in enumerate(done)]
    events = []
    if empty:
        text = f"{empty} further event files hold no scalar: starts that were given up before the first step"
        events.append(Event("aborted-starts", text, Where("log", path=done[-1].path), empty))
    if len(done) + empty >= MANY:
        text = f"{len(done) + empty} starts lie in this directory"
        events.append(Event("many-attempts", text, Where("log", path=done[-1].path), len(done) + empty))
    done[-1] = replace(done[-1], events=[*done[-1].events, *events])
    return done


def _continued(earlier: Run, later: Run) -> Run | None:
    """The two as one run, or None if the later one starts again."""
    shared = [name for name in later.series if name in earlier.series]
    if not shared:
        return union([earlier, later])
    started = _time(later, "started")
    if started < _time(earlier, "ended") and abs(started - _time(earlier, "started")) < SAME_START_SECONDS:
        ranks = sorted({*(earlier.ranks or (0,)), len(earlier.ranks or (0,))})
        note = "other processes wrote event files at the same time; the first one is shown"
        return replace(earlier, ranks=ranks, files=[*earlier.files, *later.files], notes=[*earlier.notes, note])
    name = max(shared, key=lambda n: len(earlier.series[n]))
    before, after = earlier.series[name], later.series[name]
    interval = (before.steps[-1] - before.steps[0]) / max(1, len(before) - 1)
    if after.steps[0] <= before.steps[0] + 1.5 * interval or (after.steps[0] <= 1 and len(before) > 1):
        return None
    soon = started - _time(earlier, "ended") < SAME_START_SECONDS
    begins = min(series.steps[0] for series in later.series.values())
    return join(earlier, later, seam=not (soon and begins >= (earlier.last_step or 0.0)))


def _time(run: Run, word: str) -> float:
    note = next((note for note in run.notes if note.startswith(word)), "")
    match = re.search(r"[\d.]+$", note)
    return float(match.group()) if match else 0.0


def _one_metric_files(files: list[Run]) -> list[Run]:
    """DVCLive writes one metric a file."""
    if any(run.of_attempts > 1 for run in files):
        return files
    series: dict[str, Series] = {}
    for run in files:
        for name, item in run.series.items():
            split = run.path.split("/")[-2:-1]
            unique = name if name not in series else f"{split[0] if split else run.path}/{name}"
            series[unique] = replace(item, name=unique)
    return [replace(union(files), series=series)]


# several tellings of one run


def _tellings(runs: list[Run]) -> list[Run]:
    """Merge runs of different files that tell the same values."""
    if len(runs) < 2 or len(runs) > MAX_COMPARED:
        return runs
    groups: list[list[Run]] = []
    for run in runs:
        for group in groups:
            if all(_may_merge(run, other) for other in group) and any(_belong(run, other) for other in group):
                group.append(run)
                break
        else:
            groups.append([run])
    return [union(group) if len(group) > 1 else group[0] for group in groups]


def _may_merge(one: Run, other: Run) -> bool:
    """Attempts of one file are never one run, nor are two starts, whatever they tell (the same seed tells the same)."""
    if set(one.files or (one.path,)) & set(other.files or (other.path,)):
        return False
    if one.ranks and other.ranks and one.format == other.format == "trainwreck-recording":
        return False  # what ranks tell alike is a sign of its own
    starts = start_of(home(one.path)), start_of(home(other.path))
    if (None not in starts and starts[0] != starts[1]) or one.format == other.format == "wandb":
        return False
    return 1 in (one.of_attempts, other.of_attempts) or one.attempt == other.attempt


def _belong(one: Run, other: Run) -> bool:
    if same_run(one, other):
        return True
    folder = home(one.path)
    within = start_of(folder) is not None and folder == home(other.path) and "wandb" in (one.format, other.format)
    return within and one.of_attempts == other.of_attempts == 1


def _results(runs: list[Run]) -> list[Run]:
    """End values complete the run in their directory; alone they stand for themselves."""
    results: dict[str, list[Run]] = {}
    for run in runs:
        if run.format == "results":
            results.setdefault(home(run.path), []).append(run)
    kept: list[Run] = []
    used: set[str] = set()
    for run in (run for run in runs if run.format != "results"):
        beside = results.get(home(run.path), [])
        if beside and run.attempt == run.of_attempts and run.series:
            used.add(home(run.path))
            done = run.outcome == "unknown" and any(result.outcome == "completed" for result in beside)
            files = [*run.files, *(path for result in beside for path in result.files)]
            run = replace(run, outcome="completed" if done else run.outcome, files=files)
        kept.append(run)
    return [*kept, *(union(group) for folder, group in results.items() if folder not in used)]


# starts side by side


def _starts(runs: list[Run]) -> list[Run]:
    """``version_0``, ``version_1`` … become attempts 1, 2 …; starts without any value do not take the last place."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for index, run in enumerate(runs):
        start = start_of(home(run.path))
        if start is not None and run.of_attempts == 1:
            groups.setdefault(start[0], []).append((start[1], index))
    result = list(runs)
    for members in groups.values():
        members.sort(key=lambda item: (bool(runs[item[1]].series) or _ended(runs[item[1]]), item))
        if len(members) < 2:
            continue
        for place, (_, index) in enumerate(members):
            result[index] = replace(runs[index], attempt=place + 1, of_attempts=len(members))
        if len(members) >= MANY:
            last = members[-1][1]
            text = f"{len(members)} starts lie side by side; the last one is judged"
            event = Event("many-attempts", text, Where("log", path=runs[last].path), len(members))
            result[last] = replace(result[last], events=[*result[last].events, event])
    return result


def _folds(runs: list[Run]) -> list[Run]:
    """Attempts of one text that were announced as folds are folds: nothing was given up between them."""
    result = []
    for run in runs:
        announced = [event for event in run.events if event.kind == "banner" and _FOLD.search(event.text)]
        if run.attempt == run.of_attempts > 1 and announced:
            text = f"{run.of_attempts} folds stand one after another in this log"
            event = Event("several-folds-in-one-log", text, announced[-1].where, run.of_attempts)
            run = replace(run, events=[*run.events, event])
        result.append(run)
    return result


# what lies beside a run


def _with_rank(run: Run) -> Run:
    rank = rank_in(run.path)
    return replace(run, ranks=(rank,)) if rank is not None and not run.ranks else run


def _with_settings(run: Run, settings: Sequence[Run]) -> Run:
    """Settings of the run's own directory first, then of those above it; the run's own values win."""
    here = home(run.path)
    near = [(len(here) - len(home(s.path)), s) for s in settings if _above(home(s.path), here)]
    merged: dict[str, Setting] = dict(run.settings)
    files: list[str] = []
    for _, part in sorted(near, key=lambda item: (item[0], _generality(item[1].path), item[1].path)):
        stem = part.path.rpartition("/")[2].rsplit(".", 1)[0]
        for key, value in part.settings.items():
            if key not in merged:
                merged[key] = value
            elif merged[key].value != value.value:
                merged.setdefault(f"{stem}.{key}", value)
        files.append(part.path)
    return replace(run, settings=merged, files=[*run.files, *files]) if files else run


_LENGTHS: dict[str, tuple[str, ...]] = {
    "epoch": ("epochs", "num_epochs", "max_epochs", "num_train_epochs", "n_epochs", "total_epochs"),
    "step": ("max_steps", "total_steps", "max_iters", "num_steps", "max_iter", "train_steps", "total_iters"),
    "env-step": ("total_timesteps",),
}
"""Settings that say how long a run was meant to be, by the unit of its steps."""


def _with_end(run: Run) -> Run:
    """The intended length, where only the settings tell it, and that a run which got there is complete."""
    longest = max(run.series.values(), key=len, default=None)
    if longest is None or run.attempt != run.of_attempts:
        return run
    planned = run.planned
    for key in () if planned else _LENGTHS.get(longest.unit, ()):
        value = run.settings[key].value if key in run.settings else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            planned = float(value)
            break
    last = longest.steps[-1]
    first_is_zero = longest.steps[0] == 0 and longest.unit == "epoch"
    there = planned is not None and last + (1 if first_is_zero else 0) >= planned
    outcome = "completed" if there and run.outcome == "unknown" else run.outcome
    return replace(run, planned=planned, outcome=outcome)


def _above(folder: str, run: str) -> bool:
    """``folder`` is the run's directory or one of the two above it (the working directory counts as above all)."""
    if folder == run:
        return True
    inside = not folder or run.startswith(f"{folder}/")
    return inside and run.removeprefix(folder).strip("/").count("/") < 2


def _generality(path: str) -> int:
    """Arguments of the training decide over the description of a model."""
    name = path.rpartition("/")[2].lower()
    return int(bool(re.search(r"^config\.json|generation_config|adapter_config", name)))


def _with_clock(run: Run) -> Run:
    """An event where the time column goes back, or leaps, while the steps go on: the run was stopped and resumed."""
    series = next((s for s in run.by_role("time") if len(s) >= MIN_CLOCK), None)
    if series is None:
        return run
    gaps = [b - a for a, b in pairwise(series.values)]
    rising = sorted(gap for gap in gaps if gap > 0)
    if len(rising) < 0.8 * len(gaps):
        return run
    usual = rising[len(rising) // 2]
    for index, gap in enumerate(gaps, 1):
        on = series.steps[index] >= series.steps[index - 1]
        if index <= EARLY_SHARE * len(gaps):
            continue
        back = gap < -max(usual, 1.0)
        leap = index > EARLY_ROWS and gap > CLOCK_GAP * max(usual, 1.0)
        if on and (back or leap):
            told = "goes back" if back else "leaps"
            before, after = series.values[index - 1], series.values[index]
            text = f"{series.name} {told} from {before:g} to {after:g} while the run goes on"
            value = {"from": before, "to": after}
            event = Event("resume-clock-jump", text, series.where(index), value)
            return replace(run, events=[*run.events, event])
    return run
