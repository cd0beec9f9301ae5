"""What kind of birth an event is, judged from its op and the ranges of what went in. Says what is there, never why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .events import FRESH, Event

HALF_MAX = 65504.0
"""Largest number of float16 (IEEE 754 binary16)."""
LARGEST = {"float16": HALF_MAX, "float32": 3.4028e38, "bfloat16": 3.3895e38, "float64": 1.7977e308}
BIG = 1e8
"""Finite inputs beyond this make an overflow in float32 plausible: two factors of 1e19 reach its end, sums and
exponents need far less. A judgement; below it the birth is told without a kind."""

LOGS = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0, "xlogy": 0.0, "logit": 0.0, "special_xlog1py": -1.0}
DIVISIONS = ("div", "true_divide", "divide", "reciprocal", "remainder", "fmod", "floor_divide", "addcdiv")
EXPONENTIALS = ("exp", "expm1", "exp2", "sinh", "cosh", "special_exp2")
DOMAINS = ("sqrt", "acos", "asin", "acosh", "atanh", "erfinv", "lgamma", "digamma", "special_ndtri", "polygamma")
DEVIATIONS = ("std", "var", "std_mean", "var_mean")
LINEAR_ALGEBRA = ("cholesky", "inverse", "lu_", "svd", "eig", "qr", "_solve", "linalg_inv", "linalg_solve", "logdet")
MEANS = ("mean", "nanmean", "median", "nll_loss_forward", "nll_loss2d_forward", "nanmedian", "avg_pool1d")
NORMS = ("native_layer_norm", "native_batch_norm", "native_group_norm", "_native_batch_norm_legit", "rms_norm")
NORM_NODES = ("NormBackward", "LinalgVectorNorm", "CdistBackward", "EuclideanDist", "PdistForward", "NormBackward1")


def kind(event: Event, put: Event | None, nodes: set[str]) -> str:
    """The kind of birth. ``put``: the infinity that the program wrote itself and that turned into NaN here."""
    facts = {f.get("name"): f for f in event.inputs}
    op = event.op.removeprefix("_foreach_").rstrip("_")
    if event.op.rstrip("_") in FRESH:
        return "uninitialised"
    if event.phase == "backward":
        found = _backward(event, op, facts, nodes)
        return found if found else _overflow(event, op, facts) or "gradient"
    if put is not None or event.parents or event.outside:
        return _turned(op)
    return _forward(event, op, facts)


def _forward(event: Event, op: str, facts: Mapping[Any, Any]) -> str:
    self_ = facts.get("self", facts.get("input", {}))
    low, high = self_.get("min"), self_.get("max")
    if op in LOGS:
        below = facts.get("other", self_).get("min") if op == "xlogy" else low
        if (below is not None and below <= LOGS[op]) or (op == "logit" and high is not None and high >= 1):
            return "log"
    if op in DIVISIONS or op == "rsqrt":
        if low is not None and low < 0 and op == "rsqrt" and event.nan:
            return "domain"
        if _zero_divisor(op, facts):
            return "division"
    if op == "pow":
        return _power(event, facts)
    if op in DOMAINS and event.nan | (op in ("lgamma", "digamma", "atanh", "erfinv", "special_ndtri")):
        return "domain"
    if op in EXPONENTIALS:
        return "half-overflow" if _dtype(event) == "float16" and (high or 0) < 80 else "exp"
    if op in DEVIATIONS and event.nan:
        return "deviation"
    if op.startswith("nll_loss") and event.nan and _all_ignored(facts):
        return "all-ignored"
    if op in MEANS and event.nan:
        return "empty-mean"
    if op in NORMS and not facts.get("eps", {"value": 1}).get("value", 1):
        return "division"
    if "ctc_loss" in op:
        return "ctc"
    if any(word in op for word in LINEAR_ALGEBRA):
        return "linalg"
    if event.on_purpose:
        return "constant"
    if "softmax" in op or "attention" in op:
        return "masked-softmax" if event.nan else "op"
    return _overflow(event, op, facts) or "op"


def _all_ignored(facts: Mapping[Any, Any]) -> bool:
    target, ignored = facts.get("target", {}), facts.get("ignore_index", {}).get("value")
    return bool(target.get("min") == target.get("max") == ignored)


def _turned(op: str) -> str:
    """Infinities that the program wrote, and an op that can't take them."""
    return "masked-softmax" if "softmax" in op or "attention" in op else "infinity-met"


def _zero_divisor(op: str, facts: Mapping[Any, Any]) -> bool:
    name = "self" if op in ("reciprocal", "rsqrt") else "tensor2" if op == "addcdiv" else "other"
    divisor = facts.get(name, {})
    if "value" in divisor:
        return bool(divisor["value"] == 0)
    return bool(divisor.get("zeros"))


def _power(event: Event, facts: Mapping[Any, Any]) -> str:
    base, exponent = facts.get("self", {}), facts.get("exponent", {})
    low, power = base.get("min", base.get("value")), exponent.get("value", exponent.get("min"))
    if event.nan and isinstance(low, (int, float)) and low < 0:
        return "domain"
    if isinstance(power, (int, float)) and power < 0 and (base.get("zeros") or base.get("value") == 0):
        return "division"
    if "value" in base:
        return "exp"
    return _overflow(event, "pow", facts) or "overflow"


def _overflow(event: Event, op: str, facts: Mapping[Any, Any]) -> str | None:
    """Overflow of the dtype, where the inputs are large enough to make it so."""
    if not event.inf and not event.nan:
        return None
    numbers = [abs(f["value"]) for f in facts.values() if isinstance(f.get("value"), (int, float))]
    if _dtype(event) in ("float16", "float8_e4m3fn", "float8_e5m2"):
        masks = op in ("mul", "add", "sub", "masked_fill", "where", "rsub", "to_copy", "_to_copy")
        constant = any(n > HALF_MAX for n in numbers) or (op in ("_to_copy", "to_copy") and _one_constant(facts))
        return "mask-overflow" if masks and constant else "half-overflow"
    largest = max((f.get("absmax", 0.0) for f in facts.values()), default=0.0)
    return "overflow" if max([largest, *numbers]) > BIG else None


def _one_constant(facts: Mapping[Any, Any]) -> bool:
    """A tensor of zeros and one large negative number: a mask that is made for a wider dtype."""
    mask = facts.get("self", {})
    return bool(mask.get("zeros")) and mask.get("max") == 0 and mask.get("min", 0) <= -1e5


def _backward(event: Event, op: str, facts: Mapping[Any, Any], nodes: set[str]) -> str | None:
    node = (event.node or "").removesuffix("0").removesuffix("1").removesuffix("2")
    if node.endswith("Backward") and event.node == node and not node.startswith(("Checkpoint", "Compiled")):
        return "custom-backward"
    selects = any(n.startswith(("Where", "MaskedFill", "MaskedScatter", "Index", "MaskedSelect")) for n in nodes)
    there = event.output.get("there") or []
    zero_met = event.nan and bool(there) and there[0] == 0
    rooted = node.startswith(("Sqrt", "Rsqrt"))  # rows that are taken out are no branch: the root itself is at fault
    chosen = any(n.startswith(("Where", "Masked")) for n in nodes)
    if (
        selects
        and zero_met
        and (chosen or not rooted)
        and node.startswith(("Sqrt", "Log", "Div", "Pow", "Rsqrt", "Reciprocal", "Acos", "Asin"))
    ):
        return "where-gradient"
    if node.startswith(("Sqrt", "Std", "Var")) or node.startswith(NORM_NODES):
        return "sqrt-gradient"
    if node.startswith("Pow"):
        return "sqrt-gradient" if event.inf or event.nan else None
    if node.startswith("Log"):
        return "log" if not node.startswith(("LogSoftmax", "Logsumexp")) else None
    if node.startswith(("Div", "Reciprocal", "Rsqrt")) and (op in DIVISIONS or op in ("mul", "pow", "neg")):
        return "division" if _zero_divisor(op, facts) or op != "div" else None
    if node.startswith(("Acos", "Asin", "Atanh", "Acosh", "Atan2", "Erfinv")):
        return "slope"
    if node.startswith("Ctc"):
        return "ctc"
    if any(node.startswith(w) for w in ("Linalg", "Cholesky", "Svd", "Symeig", "Inverse", "LinalgEigh")):
        return "linalg"
    return None


def _dtype(event: Event) -> str:
    return str(event.output.get("dtype", ""))


WORDS = {
    "log": "a logarithm whose argument reaches {low}",
    "division": "a division by zero",
    "domain": "outside the domain of the function: its argument lies in {low}..{high}",
    "slope": "the slope of the function is infinite at the edge of its domain",
    "exp": "an exponential that overflows: its argument reaches {high}",
    "half-overflow": "beyond 65504, the largest number of float16",
    "mask-overflow": "a mask constant that float16 can't hold",
    "overflow": "an overflow: its inputs reach {absmax}",
    "deviation": "a deviation or variance over too few elements",
    "all-ignored": "every label of the batch is ignored, so the loss is a mean over nothing",
    "empty-mean": "a mean over nothing",
    "ctc": "a target that needs more frames than there are",
    "linalg": "a matrix that is singular or nearly so",
    "masked-softmax": "a softmax over a row in which everything is masked with -inf",
    "infinity-met": "arithmetic with an infinity that the program put in",
    "constant": "a constant that the program put in",
    "uninitialised": "memory that nobody has filled",
    "sqrt-gradient": "the slope of a root, norm or deviation at zero is infinite",
    "where-gradient": "a branch that was not selected: its infinite slope times zero",
    "custom-backward": "the backward of a custom function",
    "gradient": "the backward of this operation",
    "op": "from finite inputs",
}


def words(event: Event, what: str) -> str:
    """The kind in words, with the numbers of the input that decides."""
    facts = decisive(event)
    largest = max((f.get("absmax", 0.0) for f in event.inputs), default=0.0)
    values = {"low": _number(facts.get("min")), "high": _number(facts.get("max")), "absmax": _number(largest)}
    if what == "log" and event.op.rstrip("_") == "logit":
        values["low"] = "0 or 1"
    return WORDS[what].format(**values)


def decisive(event: Event) -> dict[str, Any]:
    """The input that decides: the divisor of a division, else the argument that stands first or is largest."""
    if event.op.removeprefix("_foreach_").rstrip("_") in DIVISIONS:
        divisor = next((f for f in event.inputs if f.get("name") == "other" and "shape" in f), None)
        if divisor is not None:
            return divisor
    return max(event.inputs, key=lambda f: (f.get("name") in ("self", "input"), f.get("absmax", -1.0)), default={})


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) and math.isfinite(value) else "?"
