"""What the recorder's columns show over the whole run: predictions against targets, terms against one another, scales.

The columns come from tables ``objective<line>`` and ``frame<line>`` (record/inside/objective.py, frames.py), read at
steps 1 to 5 and every 20th.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.run import Series
from trainwreck.runs.signs import _modules as live_modules
from trainwreck.runs.signs import _settings as live_settings
from trainwreck.runs.signs._curve import View, seen, show

FAMILY = "live"
LEAST_LOOKS = 8
"""Sampled steps without which nothing is said: five of them are the first five steps."""
LEAST_STEPS = 200
"""Steps after which a network that moves should have learned something; many good runs start with a plateau."""
LATE = 0.5
"""Share of the looks, from the end, over which a final state is judged."""
NO_BETTER = 0.97
"""A loss within 3% of the entropy of the labels: nothing about the label is taken from the input."""
LEARNED = 0.75
"""Share of the label entropy below which three looks at the loss show that something was learned at some time: the loss
of a batch of 32 that nothing is known of varies by some 5%."""
NO_CORRELATION = 0.1
CONFINED = 1.2
"""Nats between the best and the worst class. A softmax over values in 0..1 gives at most 1; logits of a trained
classifier span 5 and more."""
DOMINATES = 100.0
"""Factor between the contributions of two terms from which the smaller one does not steer the shared weights."""
GROWN = 3.0
"""Targets that were so many times smaller at the start are made by what learns (returns that are bootstrapped)."""
LARGE_TARGET = 20.0
"""Mean or deviation of a regression target from which the first layers of a usual initialisation are far off."""
ONE_CLASS = 0.98
MOVES = (3e-4, 0.1)
"""Update-to-weight ratios of ordinary training: about 1e-3, with a decade on either side."""
SHARP = 0.3
"""Nats between classes from which a network reacts to its input at all."""
FACTOR_NAMES = ("weight", "lambda", "lam", "coef", "beta", "alpha", "gamma", "scale")
"""What factors of terms are called."""
_AUXILIARY = re.compile(r"(^|_)(reg|l1|l2|aux|kl|kld|commit|penalty|decay|entropy|ent|tv|gp|div|balance|smooth)", re.I)
_TERM_KL = re.compile(r"(^|_)kld?($|_)", re.I)
_OBJECTIVE = re.compile(r"^objective(\d+)/(?:(ce|mse|bce)\d*/)?(.+)$")
_TABLE = re.compile(r"^(?:objective|frame)(\d+)/")
_FRAME = re.compile(r"^frame(\d+)/(.+)$")


def find(view: View) -> Iterator[Evidence]:
    """Signs of each objective (the line of a backward) by itself."""
    paths = {
        e.where.line: e.where.path for e in view.run.events if e.kind == "tensor" and e.where.line and e.where.path
    }
    for item in _find(view):
        yield _at_line(item, paths)
    yield from live_settings.find(view)
    yield from live_modules.find(view)


def _find(view: View) -> Iterator[Evidence]:
    tables: dict[str, dict[str, Series]] = {}
    for name, series in view.run.series.items():
        table, _, column = name.partition("/")
        if table.startswith(("objective", "frame")) and column:
            tables.setdefault(table, {})[column] = series
    for table, columns in sorted(tables.items()):
        if table.startswith("objective"):
            for prefix in sorted({c.partition("/")[0] for c in columns if "/" in c}):
                numbers = {c.partition("/")[2]: s for c, s in columns.items() if c.startswith(f"{prefix}/")}
                if prefix.startswith("ce"):
                    yield from _classification(view, numbers)
                elif prefix.startswith("mse"):
                    yield from _regression(numbers)
                elif prefix.startswith("bce"):
                    yield from _binary(numbers)
                if prefix not in ("weight", "value"):
                    yield from _accumulation(view, numbers)
            parts = {k: _part(columns, k) for k in ("weight", "value")}
            yield from _terms(view, parts["weight"], parts["value"])
        else:
            yield from _labels(columns)


def _classification(view: View, columns: dict[str, Series]) -> Iterator[Evidence]:
    accuracy, loss = _late(columns, "accuracy"), _late(columns, "loss")
    entropy, classes = _late(columns, "label_entropy"), _late(columns, "classes")
    spread, top = _late(columns, "range"), _late(columns, "predicted_top")
    if not loss or not entropy or not classes or min(classes) < 2:
        return
    where = _where(columns["loss"])
    floor = median(entropy)
    below = sorted(v for v in columns["loss"].values if math.isfinite(v))[:3]
    learned = len(below) == 3 and below[-1] < LEARNED * floor  # another network may have begun since: folds, teachers
    if (
        not learned
        and floor > 0.3
        and median(loss) > NO_BETTER * floor
        and accuracy
        and median(accuracy) < 1.5 / min(classes) + 0.1
    ):
        text = f"the cross-entropy stays at {show(median(loss))}, the entropy of the labels alone is {show(floor)}"
        yield seen("live-loss-at-label-entropy", text, where, median(loss), cls="circumstantial")
        ratios = view.run.series.get("update_ratio")
        sharp = spread is not None and len(spread) > 0 and median(spread) > SHARP
        long = columns["loss"].steps[-1] >= LEAST_STEPS
        if (
            long
            and ratios is not None
            and len(ratios) >= LEAST_LOOKS
            and MOVES[0] < median(ratios.values) < MOVES[1]
            and sharp
        ):
            text += f"; each step moves the weights by {show(median(ratios.values))} of their size"
            sign = "live-learns-nothing-though-it-moves"
            yield seen(sign, text, where, median(ratios.values), cls="circumstantial")
    # With two classes a spread of 1 nat is a probability of 0.73; more classes need more.
    if spread and max(spread) < CONFINED and median(loss) > 0.7 * math.log(max(classes)) and max(classes) >= 3:
        pairs = columns.get("diagonal")
        if pairs is not None and len(pairs) >= LEAST_LOOKS and min(pairs.values) == 1.0 and min(classes) >= 8:
            text = f"the scores of right and wrong pairs are never more than {show(max(spread))} nats apart"
            yield seen("live-pairs-confined", text, where, max(spread))
        text = f"best and worst class are never more than {show(max(spread))} nats apart"
        yield seen("live-logits-confined", text, where, max(spread), cls="circumstantial")
    label_top = _late(columns, "label_top")
    if top and label_top and median(top) > ONE_CLASS and median(label_top) < 0.95 and len(top) >= 5:
        text = f"{median(top):.0%} of the predictions are one class; of the labels {median(label_top):.0%}"
        yield seen("live-one-class-predicted", text, where, median(top), cls="circumstantial")
    one = columns.get("label_top")
    rows = columns.get("rows")
    enough = one is not None and rows is not None and len(one) >= LEAST_LOOKS and median(rows.values) >= 8
    # Always the same class is a construction (a contrastive loss has its positive first), not an order of the data.
    which = columns.get("label_class")
    varies = which is None or len(set(which.values)) > 1
    if one is not None and enough and varies and median(one.values) > ONE_CLASS:
        text = f"{median(one.values):.0%} of the labels of a batch are one class"
        yield seen("live-batches-of-one-class", text, where, median(one.values))
    ignored = columns.get("ignored")
    if ignored is not None and len(ignored) >= 3 and min(ignored.values) >= 1.0:
        yield seen("live-labels-all-ignored", "every label of every batch is ignored by the loss", where, 1.0)


def _regression(columns: dict[str, Series]) -> Iterator[Evidence]:
    link, deviation = _late(columns, "correlation"), _late(columns, "target_std")
    mean = _late(columns, "target_mean")
    if not link or not deviation or not mean:
        return
    where = _where(columns["correlation"])
    loss = _late(columns, "loss")
    flat = median(deviation) > 0 and loss and median(loss) > 0.9 * median(deviation) ** 2
    if abs(median(link)) < NO_CORRELATION and flat and len(link) >= 5:
        text = f"predictions do not follow their targets (correlation {show(median(link))})"
        yield seen("live-predictions-unrelated", text, where, median(link), cls="circumstantial")
    size = max(abs(median(mean)), median(deviation))
    begun = max(abs(columns["target_mean"].values[0]), columns["target_std"].values[0])
    if size > LARGE_TARGET and begun > size / GROWN:
        text = f"the regression target has mean {show(median(mean))} and deviation {show(median(deviation))}"
        yield seen("live-targets-large", text, where, size, cls="circumstantial")


def _binary(columns: dict[str, Series]) -> Iterator[Evidence]:
    low, high = columns.get("min"), columns.get("max")
    guess, real = _late(columns, "predicted_positives"), _late(columns, "positives")
    if low is None or high is None or len(low) < LEAST_LOOKS or not guess or not real:
        return
    where = _where(low)
    if min(low.values) >= 0.0 and max(high.values) <= 1.0 and max(high.values) - min(low.values) > 0.05:
        text = f"what goes into the loss as a logit stays within {show(min(low.values))} and {show(max(high.values))}"
        yield seen("live-binary-scores-in-unit-range", text, where, max(high.values))
    for side, name in ((0.0, "target_min"), (1.0, "target_max")):
        column = columns.get(name)
        if column is not None and len(column) and (min(column.values) < 0 or max(column.values) > 1):
            text = f"targets of the binary loss reach {show(min(column.values) if side == 0 else max(column.values))}"
            yield seen("live-binary-target-out-of-range", text, where, max(column.values))
            break


def _part(columns: dict[str, Series], prefix: str) -> dict[str, Series]:
    return {c.partition("/")[2]: s for c, s in columns.items() if c.startswith(f"{prefix}/")}


def _terms(view: View, factors: dict[str, Series], seen_values: dict[str, Series]) -> Iterator[Evidence]:
    """Named terms of one loss: contributions (factor times value) against one another."""
    parts: dict[str, float] = {}
    first: dict[str, float] = {}
    for name, factor in factors.items():
        series = view.run.series.get(f"term/{name}")
        if series is None or len(series) < 20:
            series = seen_values.get(name)
        if series is None or len(series) < LEAST_LOOKS or not len(factor):
            continue
        half, quarter = len(series) // 2, max(1, len(series) // 4)
        values = [abs(v) for v in series.values[half:] if math.isfinite(v)]
        early = [abs(v) for v in series.values[:quarter] if math.isfinite(v)]
        if values and early:
            parts[name] = abs(median(factor.values)) * median(values)
            first[name] = abs(median(factor.values)) * median(early)
        yield from _kl(name, factor, series)
    leaves = {n: v for n, v in parts.items() if not _is_sum(n, parts)}
    ordered = sorted((n for n in leaves if leaves[n] > 0), key=leaves.__getitem__)
    if len(ordered) >= 2:
        small, large = ordered[-2], ordered[-1]
        ratio = leaves[large] / leaves[small]
        # a term that was as large and is solved by now was not drowned
        if min(ratio, first[large] / max(first[small], 1e-300)) > DOMINATES and not _AUXILIARY.search(small):
            text = f"{large} contributes {show(ratio)} times as much to the loss as {small}"
            facts = {"ratio": ratio, "number": median(factors[large].values), "names": [large, *FACTOR_NAMES]}
            yield seen("live-term-dominates", text, _where(factors[large], large), facts, cls="circumstantial")


def _kl(name: str, factor: Series, series: Series) -> Iterator[Evidence]:
    if not _TERM_KL.search(name):
        return
    weight, last = median(factor.values), median(series.values[-max(1, len(series) // 10) :])
    if weight > 2.0:
        text = f"the KL term {name} stands in the loss with the factor {show(weight)}"
        facts = {"number": weight, "names": [name, *FACTOR_NAMES]}
        yield seen("live-kl-weight-large", text, _where(factor, name), facts, cls="circumstantial")
    if abs(last) < 0.05 and max(series.values) > 10 * max(abs(last), 1e-9):
        text = f"the KL term {name} falls to {show(last)}"
        yield seen("live-kl-vanishes", text, _where(series, name), last, cls="circumstantial")


def _is_sum(name: str, parts: dict[str, float]) -> bool:
    """True for a variable that is about the sum of all others: the loss itself."""
    rest = sum(v for n, v in parts.items() if n != name)
    return rest > 0 and len(parts) > 2 and abs(parts[name] - rest) < 0.02 * rest


def _accumulation(view: View, columns: dict[str, Series]) -> Iterator[Evidence]:
    factor, averaged = columns.get("factor"), columns.get("averaged")
    micro = view.run.series.get("micro_batches")
    if factor is None or averaged is None or micro is None or len(micro) < 5 or not len(factor):
        return
    count = median(micro.values)
    if count >= 2 and median(averaged.values) == 1.0 and median(factor.values) == 1.0:
        text = f"{count:.0f} backwards of mean losses are summed up for one step, none of them divided"
        yield seen("live-accumulation-not-divided", text, _where(factor), count, cls="circumstantial")


def _labels(columns: dict[str, Series]) -> Iterator[Evidence]:
    """Class labels in the calling frame: runs of equal ones, batches of one class that changes."""
    for name, series in columns.items():
        if not name.endswith(".adjacent") or len(series) < LEAST_LOOKS:
            continue
        base = name.removesuffix(".adjacent")
        top, mean = columns.get(f"{base}.top"), columns.get(f"{base}.mean")
        if top is None or mean is None or len(mean) < LEAST_LOOKS:
            continue
        moving = max(mean.values) - min(mean.values) > 0.5
        if median(series.values) > 0.9 and median(top.values) > 0.9 and moving:
            text = f"{base} is nearly one value within a batch and another in other batches: the data is sorted by it"
            yield seen("live-batches-sorted-by-label", text, _where(series, base), median(top.values))


def _late(columns: dict[str, Series], name: str) -> Sequence[float]:
    """Finite values of the later looks; empty with too few of them."""
    series = columns.get(name)
    if series is None or len(series) < LEAST_LOOKS:
        return ()
    values = list(series.values)[-max(3, int(len(series) * LATE)) :]
    return [v for v in values if math.isfinite(v)]


def _where(series: Series, module: str | None = None) -> Where:
    """The backward under which the column stands; its line is found among the events (``find``)."""
    return Where("tensor", path=series.path, step=series.steps[-1], metric=series.name, module=module)


def _at_line(item: Evidence, paths: dict[int, str]) -> Evidence:
    """``item`` at the line of its backward, which stands in the name of its table."""
    match = _TABLE.match(item.where.metric or "")
    line = int(match[1]) if match is not None else 0
    if line not in paths:
        return item
    return replace(item, where=replace(item.where, path=paths[line], line=line))
