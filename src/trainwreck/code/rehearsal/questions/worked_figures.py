"""Figures that a program works out itself, for answers of ours: is a right order told from its reverse, does what is
equal have no distance, are precision and recall put together as they are defined?"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.box_functions import statement_of
from trainwreck.code.scopes import FunctionNode, Scope

LABELS = (0, 1, 0, 1, 1, 0, 1, 0)
SCORES = (0.1, 0.4, 0.35, 0.8, 0.65, 0.6, 0.7, 0.2)
"""Fifteen of sixteen pairs stand in the right order."""
CHOSEN = (1, 0, 0, 1, 0, 1, 0, 0)
TRUE = (1, 1, 1, 0, 0, 1, 0, 0)
"""Two hits, one false alarm, two misses: F1 is 4/7 of the ones, 2/3 of the zeros, 0.619 in the mean and 5/8 in all."""
COARSE = 0.15
"""An area by a few thresholds, or interpolated, lies so near the true one."""
SMOOTHED = 0.07
"""Where one is added above and below of a dozen pixels."""


def figure_wrong(run: Rehearsing) -> Iterator[Answer]:
    """An area below a curve, a gain, an F1, a share of variance or a distance of texts that the definition excludes."""
    for function in run.project.functions:
        if not isinstance(function.node, FunctionNode) or function.owner is not None or function.node.decorator_list:
            continue
        for names, wrong in FIGURES:
            found = wrong(run, function) if names.search(function.name) and _asked(function, wrong) else ""
            if found:
                yield Answer(_place(function, turned=wrong is _area or found.startswith(TURNED)), found)
                return
        least = _least_of_three(function)
        if least is not None and (found := _distance_of_texts(run, function)):
            yield Answer(least, found)
            return


NOTHING = math.nan
"""An order of the arguments that comes to no number."""


def _asked(function: Scope, wrong: Callable[[Rehearsing, Scope], str]) -> bool:
    """True where the arguments are answers and truths: a curve that is handed on as such is no ranking."""
    if wrong in (_both, _dice):
        return not _by_classes(function)
    if wrong in (_area, _precision):
        names = [n.lower() for n in function.positional]
        return any(map(RANKED.search, names)) and not any(map(CURVE.search, names))
    return True


RANKED = re.compile(r"score|pred|prob|logit|risk|output|^(p|s|yhat|y_hat|sim|conf)$")
CURVE = re.compile(r"fpr|tpr|recall|precision|^rec|^prec|curve|^xs?$")


def _by_classes(function: Scope) -> bool:
    """True for a figure that is put together from those of several classes: ours are two, and it may count more."""
    loops = any(isinstance(n, ast.For | ast.comprehension) for n in function.nodes)
    return loops or any(isinstance(n, ast.Call) and last_name(n.func) in TABLES for n in function.nodes)


TABLES = frozenset(["bincount", "one_hot", "eye", "confusion_matrix", "unique", "scatter_", "scatter_add_", "add.at"])
TURNED = "a reversed order"


def _worked(run: Rehearsing, function: Scope, given: Sequence[Sequence[float]]) -> list[float]:
    """The figure for the arguments in each order; nothing at all where none comes to a number."""
    import numpy as np

    from trainwreck.code.rehearsal.trial.steps import Steps, Unknown

    assert isinstance(function.node, FunctionNode)
    needed = len(function.positional) - len(function.node.args.defaults)
    rest = [len(given[0])] if needed == len(given) + 1 else []
    if needed != len(given) + len(rest):
        return []
    found: list[float] = []
    for order in permutations(given):
        try:
            value = np.asarray(Steps(run.project).call(function, [*map(np.asarray, order), *rest]))
        except (Unknown, ValueError):
            found.append(NOTHING)
            continue
        number = value.size == 1 and value.dtype.kind in "fiu" and bool(np.isfinite(value).all())
        found.append(float(value.reshape(-1)[0]) if number else NOTHING)
    return found if any(v == v for v in found) else []


def _first(found: list[float]) -> float:
    return next(v for v in found if v == v)


def _area(run: Rehearsing, function: Scope) -> str:
    """The area below the curve of hits and false alarms."""
    up, down = (_worked(run, function, (SCORES, LABELS)), _worked(run, function, ([1 - s for s in SCORES], LABELS)))
    if (
        not up
        or not down
        or any(abs(a - 15 / 16) < COARSE and abs(b - 1 / 16) < COARSE for a, b in zip(up, down, strict=True))
    ):
        return ""
    near = _first(up)
    return f"15 of 16 pairs in the right order have an area of {near:.2g} by this, and not of 0.94"


def _precision(run: Rehearsing, function: Scope) -> str:
    """The mean of the precisions at each hit."""
    best, worst = (_worked(run, function, (s, LABELS)) for s in (LABELS_SCORED, [1 - s for s in LABELS_SCORED]))
    if not best or not worst or any(abs(a - 1) < SMOOTHED and b < 1 - COARSE for a, b in zip(best, worst, strict=True)):
        return ""
    high, low = _first(best), _first(worst)
    if low > high:
        return f"{TURNED} has {low:.2g} by this, and a perfect one {high:.2g}"
    return f"a perfect order has {high:.2g} by this, and its reverse {low:.2g}"


LABELS_SCORED = tuple(label * 0.5 + 0.01 * n for n, label in enumerate(LABELS))


def _both(run: Rehearsing, function: Scope) -> str:
    found = _worked(run, function, (CHOSEN, TRUE))
    known = (4 / 7, 2 / 3, (4 / 7 + 2 / 3) / 2, 5 / 8)
    if not found or any(abs(v - k) < 0.02 for v in found for k in known):
        return ""
    return f"two hits, one false alarm and two misses have an F1 of {_first(found):.2g} by this, and not of 0.57"


def _variance(run: Rehearsing, function: Scope) -> str:
    import numpy as np

    true, told = np.asarray([1.0, 2, 3, 4, 6]), np.asarray([1.1, 1.7, 3.2, 4.4, 5.3])
    wanted = 1 - ((true - told) ** 2).sum() / ((true - true.mean()) ** 2).sum()
    found = _worked(run, function, (told.tolist(), true.tolist()))
    if not found or any(abs(v - wanted) < 0.01 for v in found):
        return ""
    return f"this explains {_first(found):.2g} of a variance of which {wanted:.2g} is explained"


def _errors(run: Rehearsing, function: Scope) -> str:
    found = _worked(run, function, ([1.0, 3.0, 2.0, 6.0], [2.0, 2.0, 3.0, 5.0]))
    known = [v for v in found if v == v]
    return "errors of different sign cancel out in this" if known and all(abs(v) < 1e-6 for v in known) else ""


def _dice(run: Rehearsing, function: Scope) -> str:
    one, other = [1.0] * 8 + [0.0] * 8, [0.0] * 4 + [1.0] * 8 + [0.0] * 4
    itself, half = _worked(run, function, (one, one)), _worked(run, function, (one, other))
    if not half or not itself or any(abs(v - 0.5) < SMOOTHED for v in half):
        return ""
    return f"two halves that meet in one quarter of a picture overlap by {_first(half):.2g} in this, and not by 0.5"


FIGURES: tuple[tuple[re.Pattern[str], Callable[[Rehearsing, Scope], str]], ...] = (
    (re.compile(r"(^|_)(auc|auroc|roc_auc)(_|$)", re.IGNORECASE), _area),
    (re.compile(r"^(average_precision|ap|avg_precision|ndcg|ndcg_at_k|ndcg_score)$", re.IGNORECASE), _precision),
    (re.compile(r"^(binary_|macro_)?f1(_score|_measure)?$", re.IGNORECASE), _both),
    (re.compile(r"^(r2|r_squared|r2_score|explained_variance)$", re.IGNORECASE), _variance),
    (re.compile(r"^(mae|mse|rmse|mean_(absolute|squared)_error)$", re.IGNORECASE), _errors),
    (re.compile(r"^(dice|dice_score|dice_coef|dice_coefficient)$", re.IGNORECASE), _dice),
)


def _least_of_three(function: Scope) -> Place | None:
    """``min`` of three ways, in a loop in a loop: how many changes make one text of another."""
    loops = [n for n in function.nodes if isinstance(n, ast.For)]
    nested = any(a is not b and any(n is b for n in ast.walk(a)) for a in loops for b in loops)
    least = [n for n in function.nodes if isinstance(n, ast.Call) and last_name(n.func) == "min" and len(n.args) > 2]
    return statement_of(function, least[0]) if least and nested else None


def _distance_of_texts(run: Rehearsing, function: Scope) -> str:
    from trainwreck.code.rehearsal.trial.steps import Steps, Unknown

    if len(function.positional) != 2:
        return ""
    found: list[float] = []
    for one, other in (("abcde", "abcde"), ("abcde", "abxde"), ("abcde", "vwxyz"), ("abc", "abcde"), ("abcde", "abc")):
        try:
            value = Steps(run.project).call(function, [one, other])
        except Unknown:
            return ""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return ""
        found.append(float(value))
    same, one_off, all_off, longer, shorter = found
    if same != 0:
        return f"a text has a distance of {same:g} from itself by this"
    if not 0 < one_off < all_off:
        return "a text that differs in one sign is no nearer by this than one that differs in all"
    if longer <= 0 or shorter <= 0:
        return "signs that are too many, or missing, do not count in this distance"
    return ""


def _place(function: Scope, *, turned: bool) -> Place:
    """Where the order is taken, if it is turned round, else the last quotient."""
    orders = [
        n for n in function.nodes if isinstance(n, ast.Call) and last_name(n.func) in ("argsort", "sort", "sorted")
    ]
    quotients = [n for n in function.nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)]
    chosen = (orders[:1] if turned else []) or quotients[-1:] or orders[:1]
    return statement_of(function, chosen[0]) if chosen else (function.node, function)


__all__ = ["figure_wrong"]
