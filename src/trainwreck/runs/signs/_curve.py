"""What all signs look at: a series reduced to a bounded number of points, with its levels and its noise.

A sign never looks at raw points alone: ``Curve`` offers levels (medians over stretches), a noise estimate and spikes,
all of which are the same for a run logged every step and one logged every hundred, and for a loss in other units.
"""

from __future__ import annotations

import math
import re
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trainwreck.core.evidence import Evidence, EvidenceClass, Where
from trainwreck.core.run import Run, Series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LARGEST = 1e100
"""Larger values count as this: their squares and sums stay finite."""
MAX_POINTS = 2000
"""A longer series is reduced to this many buckets; a spike of one point survives as the bucket's extreme."""
SPIKE_WINDOW = 31
"""Points of the running median that a spike stands out from: enough to outvote a spike of ten points (a judgement)."""
EXPLODED = 3.0
"""Level of the first 5% over the very first point, above which a run blew up at once; a judgement."""
TAIL = 3.0
"""Times the 98th percentile of the residuals around: six standard deviations if they are normal; a judgement."""
MAD_TO_SD = 1.4826
"""Median absolute deviation to standard deviation of a normal distribution (definition)."""


class Curve:
    """One series, finite points only, at most ``MAX_POINTS`` of them. Immutable; quantities are computed on demand."""

    def __init__(self, series: Series) -> None:
        import numpy as np

        self.series = series
        raw = np.frombuffer(series.values, dtype=np.float64) if len(series) else np.zeros(0)
        self.raw: Floats = raw
        self.finite: Any = np.isfinite(raw)
        self.index: Any = np.flatnonzero(self.finite)
        values = np.clip(raw[self.index], -LARGEST, LARGEST)
        count = len(values)
        if count > MAX_POINTS:
            size = math.ceil(count / MAX_POINTS)
            whole = count // size * size
            parts = values[:whole].reshape(-1, size)
            self.v: Floats = np.median(parts, axis=1)
            best = parts.argmax(axis=1)
            self.top: Floats = parts.max(axis=1)
            self.low: Floats = parts.min(axis=1)
            self.at: Any = self.index[np.arange(len(parts)) * size + best]
            self.size = size
        else:
            self.v = self.top = self.low = values
            self.at = self.index
            self.size = 1

    @property
    def name(self) -> str:
        return self.series.name

    @property
    def n(self) -> int:
        """Points after the reduction."""
        return len(self.v)

    @property
    def count(self) -> int:
        """Points as logged, non-finite ones included."""
        return len(self.raw)

    def where(self, place: int) -> Where:
        """The place of reduced point ``place`` (negative counts from the end)."""
        return self.series.where(int(self.at[place]))

    def step(self, place: int) -> float:
        return float(self.series.steps[int(self.at[place])])

    @cached_property
    def start(self) -> float:
        """Level at the beginning: median of the first 5% of the points, of the first alone below forty."""
        import numpy as np

        return float(np.median(self.v[: max(1, self.n // 20)])) if self.n else math.nan

    @cached_property
    def low_start(self) -> float:
        """``start``, but the very first point where the curve more than triples within its first 5%: of a loss that
        blows up at once only that point is the level of the untrained model."""
        first = float(self.v[0]) if self.n else math.nan
        return first if 0 < first < self.start / EXPLODED else self.start

    @cached_property
    def end(self) -> float:
        """Level at the end: median of the last tenth, at least three points where there are ten."""
        import numpy as np

        width = max(3, self.n // 10) if self.n >= 10 else min(self.n, 2 if self.n >= 6 else 1)
        return float(np.median(self.v[-width:])) if self.n else math.nan

    def level(self, first: float, last: float) -> float:
        """Median of the points between two fractions (0..1) of the series."""
        import numpy as np

        low = min(int(first * self.n), self.n - 1)
        high = max(low + 1, math.ceil(last * self.n))
        return float(np.median(self.v[low:high])) if self.n else math.nan

    def blocks(self, number: int = 10) -> Floats:
        """Medians of ``number`` equal stretches (fewer where there are fewer points)."""
        import numpy as np

        parts = np.array_split(self.v, min(number, self.n)) if self.n else []
        return np.array([float(np.median(part)) for part in parts])

    @cached_property
    def counts_up(self) -> bool:
        """A counter: whole numbers only, or a value that never falls."""
        import numpy as np

        whole = bool((self.v == np.round(self.v)).all())
        return whole or (self.n >= 3 and bool((np.diff(self.v) >= 0).all()))

    @cached_property
    def median(self) -> float:
        import numpy as np

        return float(np.median(self.v)) if self.n else math.nan

    @cached_property
    def noise(self) -> float:
        """Standard deviation of the point-to-point scatter, from the median absolute difference of neighbours."""
        import numpy as np

        if self.n < 3:
            return 0.0
        return float(np.median(np.abs(np.diff(self.v))) * MAD_TO_SD / math.sqrt(2))

    @cached_property
    def scatter(self) -> float:
        """Robust standard deviation around the running median."""
        import numpy as np

        rest = self.v - self.smooth
        return float(np.median(np.abs(rest - np.median(rest))) * MAD_TO_SD) if self.n else 0.0

    @cached_property
    def smooth(self) -> Floats:
        """Running median over ``SPIKE_WINDOW`` points, or a third of a short series."""
        import numpy as np
        from numpy.lib.stride_tricks import sliding_window_view

        window = min(SPIKE_WINDOW, max(3, self.n // 3)) | 1
        if self.n < window:
            return np.full(self.n, self.median)
        half = window // 2
        inner = np.median(sliding_window_view(self.v, window), axis=1)
        return np.concatenate([np.full(half, inner[0]), inner, np.full(half, inner[-1])])

    @cached_property
    def lowest(self) -> int:
        """Place of the smallest smoothed value."""
        return int(self.smooth.argmin()) if self.n else 0

    def spikes(self, factor: float, sigmas: float = 10.0, skip: float = 0.02) -> list[int]:
        """Places (one a spike) where the curve stands ``factor`` times and ``sigmas`` scatters over its running median.

        The first ``skip`` of the points (at least two; of a hundred and more 5%) is left out: warm-up and the noise of
        the steep start are no spikes. Only for positive levels.
        """
        import numpy as np

        if self.n < 8:
            return []
        base = np.maximum(self.smooth, 0)
        floor = max(self.scatter, 1e-12 * abs(self.median))
        high = (self.top > factor * base) & (self.top > base + sigmas * floor) & (base > 0)
        high[: max(2, int(max(skip, 0.05 if self.n >= 100 else 0.0) * self.n))] = False
        places = np.flatnonzero(high)
        if not len(places):
            return []
        # The steep start of a curve stands above its later median; a spike stands above what came just before it.
        places = np.array([p for p in places if self.top[p] > math.sqrt(factor) * self.v[max(0, p - 6) : p].min()], int)
        if not len(places):
            return []
        groups = np.split(places, np.flatnonzero(np.diff(places) > max(2, self.n // 200)) + 1)
        return [int(g[self.top[g].argmax()]) for g in groups]

    def stands_out(self, place: int) -> bool:
        """True if this point stands clear of the curve's own upper tail: batch losses near zero have heavy tails.

        The tail is the 98th percentile of the residuals within a tenth of the run on either side.
        """
        import numpy as np

        if self.n < 100:
            return True
        low, high = max(0, place - self.n // 10), min(self.n, place + self.n // 10)
        near = np.abs(np.arange(low, high) - place) > 3
        rest = (self.top[low:high] - self.smooth[low:high])[near]
        return bool(self.top[place] - self.smooth[place] > TAIL * float(np.quantile(rest, 0.98)))

    def flat(self, first: float = 0.0, last: float = 1.0, *, within: float = 0.01) -> bool:
        """True if the levels of this stretch stay within ``within`` (relative) of their median."""
        import numpy as np

        part = self.v[int(first * self.n) : max(1, math.ceil(last * self.n))]
        if len(part) < 4:
            return False
        middle = float(np.median(part))
        groups = np.array([float(np.mean(p)) for p in np.array_split(part, min(5, len(part) // 2))])
        return bool(np.ptp(groups) <= within * abs(middle))


class View:
    """One run as the signs see it: curves by role, made once, and what kind of training it is."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._curves: dict[str, Curve] = {}

    def curve(self, series: Series) -> Curve:
        if series.name not in self._curves:
            self._curves[series.name] = Curve(series)
        return self._curves[series.name]

    def all(self, *roles: str) -> list[Curve]:
        """Curves with one of these roles that have at least one finite point."""
        return [c for s in self.run.by_role(*roles) if len(s) and (c := self.curve(s)).n]

    def named(self, pattern: str) -> list[Curve]:
        """Curves whose name matches a regular expression (case ignored)."""
        wanted = re.compile(pattern, re.IGNORECASE)
        return [c for s in self.run.series.values() if len(s) and wanted.search(s.name) and (c := self.curve(s)).n]

    @cached_property
    def loss(self) -> Curve | None:
        """The training loss that is judged: the one with most points, else an error that is minimised (``mse``)."""
        named = self.all("loss")
        if named or self.is_rl or self.is_gan:
            return next(iter(named), None)
        from trainwreck.runs.roles import lower_is_better

        errors = [c for c in self.all("metric") if lower_is_better(c.name)]
        totals = [c for c in self.named(_TOTAL) if c.series.role is None and not c.counts_up]
        return max([*errors, *totals], key=lambda c: c.n, default=None)

    @cached_property
    def grad_norms(self) -> list[Curve]:
        """Total gradient norms; one with the name of a part in front (``encoder_grad_norm``) is none."""
        return [c for c in self.all("grad-norm") if _PLAIN_NORM.search(c.name)]

    @cached_property
    def part_norms(self) -> list[Curve]:
        """Gradient norms of parts of the model."""
        parts = [c for c in self.all("grad-norm") if not _PLAIN_NORM.search(c.name)]
        return [*parts, *self.all("grad-norm-term")]

    @cached_property
    def eval_loss(self) -> Curve | None:
        return next(iter(self.all("eval-loss")), None)

    @cached_property
    def is_rl(self) -> bool:
        """Rewards, a policy or a critic: the loss of such a run is no measure of progress."""
        return "policy/products" in self.run.series or any(s.role in _RL_ROLES for s in self.run.series.values())

    @cached_property
    def is_preference(self) -> bool:
        """Preference optimisation or a reward model: a loss that starts at ln 2."""
        return any(s.role in ("reward-chosen", "reward-margin", "reward-accuracy") for s in self.run.series.values())

    @cached_property
    def is_vae(self) -> bool:
        names = " ".join(self.run.series).lower()
        return bool(re.search(r"\bkld?\b|kl_?loss|kl_?div|[_/]kld?\b", names)) and bool(
            re.search(r"recon|nll_loss|elbo|\bmse\b|\bbce\b", names)
        )

    @cached_property
    def is_gan(self) -> bool:
        roles = {s.role for s in self.run.series.values()}
        return "generator-loss" in roles or "discriminator-loss" in roles

    @cached_property
    def is_moved(self) -> bool:
        """Recordings: whether something else than the weights that a loss trains moves it.

        Its rise says nothing of the rate then: another optimizer with losses of its own takes turns with the first
        (two players), or the target of a term is trained as well (a codebook and what it stands for).
        """
        if any(e.kind == "moving-target" for e in self.run.events):
            return True
        second = self.run.series.get("optimizer1/loss")
        if second is None or len(second) < 8:
            return False
        lines: dict[str, tuple[float, float]] = {}
        for name, series in self.run.series.items():
            table = name.partition("/")[0]
            if _OBJECTIVE.match(table) and len(series):
                first, last = lines.get(table, (series.steps[0], series.steps[-1]))
                lines[table] = min(first, series.steps[0]), max(last, series.steps[-1])
        spans = sorted(lines.values())
        return any(later[0] < earlier[1] for earlier, later in pairwise(spans))

    @cached_property
    def is_diffusion(self) -> bool:
        names = " ".join(self.run.series).lower()
        return bool(re.search(r"loss_q[0-3]|\bvb\b|diffusion|ddpm|snr|\beps_|noise_(loss|mse)|denois", names)) or any(
            re.search(r"diffusion|timesteps|noise_schedul", k.lower()) for k in self.run.settings
        )

    @cached_property
    def span(self) -> tuple[float, float]:
        """First and last step seen on any curve with a role (0, 0 if none)."""
        ends = [(s.steps[0], s.steps[-1]) for s in self.run.series.values() if len(s)]
        return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else (0.0, 0.0)

    def setting(self, *endings: str) -> float | None:
        """The numeric value of the first setting whose key ends in one of these names (last dotted part)."""
        for ending in endings:
            for key, setting in self.run.settings.items():
                number = isinstance(setting.value, (int, float)) and not isinstance(setting.value, bool)
                if number and key.rsplit(".", 1)[-1].lower() == ending:
                    return float(setting.value)
        return None


_TOTAL = r"^(train[/_ ]?)?(total|contrastive|info_?nce|objective|cost|nll|ce|xent|elbo)$"
_OBJECTIVE = re.compile(r"objective\d+$")
_PLAIN_NORM = re.compile(
    r"^(.*[/.])?(train(ing)?|global|total|mean|avg|max|full|overall|opt(im\w*)?|model|unclipped|actor|policy)?[_ -]*"
    r"(grad(ient)?s?[_ -]?norm|gnorm|norm[_ -]?grad)",
    re.IGNORECASE,
)
_RL_ROLES = frozenset(
    (
        "rl-loss",
        "reward",
        "value-loss",
        "policy-loss",
        "explained-variance",
        "neg-entropy",
        "advantage",
        "clip-fraction",
        "zero-spread",
        "episode-length",
        "action-std",
    )
)


def seen(
    sign: str, text: str, where: Where, value: Any = None, *, cls: EvidenceClass = "direct", end: float | None = None
) -> Evidence:
    """A sighting; numbers in it are plain Python ones."""
    return Evidence(sign, cls, text, where, value, end=end)


def show(value: float) -> str:
    """A number for a sentence: four significant digits."""
    return f"{value:.4g}"


def at_step(curve: Curve, place: int) -> str:
    """``step 120`` or ``epoch 3``."""
    return (
        f"{curve.series.unit} {show(curve.step(place))}"
        if abs(curve.step(place)) < 1e4
        else (f"{curve.series.unit} {curve.step(place):.0f}")
    )
