"""What became of a failing JAX step: its origin as the same JSON that the torch side writes (``origin.json``)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from trainwreck.record.jaxside.trace import Event, Exhausted, Tracer, origin, relative

LOGS = ("log", "log1p", "logit")
EXPONENTIALS = ("exp", "exp2", "expm1", "sinh", "cosh")
DOMAINS = ("sqrt", "acos", "asin", "acosh", "atanh", "erf_inv", "lgamma", "digamma", "log1p")
LINEAR_ALGEBRA = ("cholesky", "lu", "qr", "svd", "eigh", "triangular_solve", "custom_linear_solve")
HALF_MAX = 65504.0
"""Largest number of float16 (IEEE 754 binary16)."""


def replay(step: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Run ``step(*arguments, **options)`` once more, primitive by primitive; where the first non-finite value was born.

    Arrays are followed; everything else (strings, functions, static arguments) is passed as it is. Raises nothing: a
    step that cannot be traced gives an origin of kind ``unknown`` that says why, after ``checkify`` has been asked.
    """
    tree = importlib.import_module("jax.tree_util")
    leaves, structure = tree.tree_flatten((arguments, options))
    paths = [tree.keystr(path) for path, _ in tree.tree_flatten_with_path((arguments, options))[0]]
    arrays = [i for i, leaf in enumerate(leaves) if _traced(leaf)]

    def flat(*values: Any) -> list[Any]:
        filled = list(leaves)
        for index, value in zip(arrays, values, strict=True):
            filled[index] = value
        given, named = tree.tree_unflatten(structure, filled)
        return list(tree.tree_leaves(step(*given, **named)))

    tracer = Tracer()
    try:
        outputs = tracer.run(flat, [leaves[i] for i in arrays], [paths[i] for i in arrays])
    except Exhausted:
        return _unknown(step, arguments, options, "the step has too many equations to be run one by one")
    except Exception as problem:
        return _unknown(step, arguments, options, f"{type(problem).__name__}: {str(problem).splitlines()[0][:200]}")
    # Scalars first: the loss is what the user looks at.
    outputs.sort(key=lambda v: len(getattr(v.array, "shape", ())) > 0)
    birth, blamed = origin(outputs)
    facts = {"reproduced": birth is not None or bool(blamed), "ops": tracer.equations, "notes": []}
    if blamed:
        return facts | _arguments(blamed)
    if birth is None:
        return facts | {"kind": "unknown", "phase": "unknown", "text": "the replay stayed finite"}
    return facts | _birth(birth)


def _traced(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _birth(event: Event) -> dict[str, Any]:
    kind = _kind(event)
    value = "NaN" if event.nan else "infinity"
    path = relative(event.path)
    where = f" at {path}:{event.line}" if path else ""
    text = f"{value} is born in {event.op}{where}"
    ranges = [f for f in event.inputs if "min" in f]
    if ranges:
        text += f": its inputs lie in {min(f['min'] for f in ranges):.4g}..{max(f['max'] for f in ranges):.4g}"
    told: dict[str, Any] = {"kind": kind, "phase": "forward", "op": event.op, "inputs": event.inputs, "text": text}
    if path is not None:
        told |= {"path": path, "line": event.line, "function": event.function}
    return told


def _kind(event: Event) -> str:
    """The kind of birth, in the words of ``record/inside/births.py``."""
    first = event.inputs[0] if event.inputs else {}
    last = event.inputs[-1] if event.inputs else {}
    if event.written or event.parents:
        return "infinity-met"
    if event.op in LOGS and first.get("min", 1.0) <= 0:
        return "log"
    if event.op in ("div", "rem", "rsqrt") and (last if event.op != "rsqrt" else first).get("zeros"):
        return "division"
    if event.op in ("pow", "integer_pow"):
        return "domain" if event.nan else "division" if first.get("zeros") else "overflow"
    if event.op in DOMAINS and event.nan:
        return "domain"
    if event.op in EXPONENTIALS:
        return "half-overflow" if first.get("dtype") == "float16" and first.get("max", 0.0) < 80 else "exp"
    if event.op in LINEAR_ALGEBRA:
        return "linalg"
    if any(f.get("dtype") == "float16" for f in event.inputs):
        return "half-overflow"
    largest = max((max(abs(f["min"]), abs(f["max"])) for f in event.inputs if "min" in f), default=0.0)
    return "overflow" if largest > 1e8 else "op"


def _arguments(names: list[str]) -> dict[str, Any]:
    """Something that was handed to the step was not finite already."""
    text = f"not finite before the step computed anything: argument {', '.join(names[:4])}"
    words = " ".join(names).lower()
    kind = "weights" if any(word in words for word in ("param", "opt_state", "kernel", "bias")) else "data"
    return {"kind": kind, "phase": kind, "data": [{"name": n} for n in names[:8]], "text": text}


def _unknown(step: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any], why: str) -> dict[str, Any]:
    """What ``checkify`` says, for a step that could not be run equation by equation."""
    told: dict[str, Any] = {"kind": "unknown", "phase": "unknown", "reproduced": False, "notes": [why]}
    try:
        checkify = importlib.import_module("jax.experimental.checkify")
        error, _ = checkify.checkify(step, errors=checkify.float_checks)(*arguments, **options)
        message = error.get()
    except Exception as problem:
        return told | {"text": f"the step could not be run again ({type(problem).__name__})"}
    if not message:
        return told | {"text": "the replay stayed finite"}
    return told | {"reproduced": True, "phase": "forward", "text": str(message).splitlines()[0]}
