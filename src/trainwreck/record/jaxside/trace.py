"""Run a function of JAX primitive by primitive and find where the first non-finite value is born.

The function is turned into a jaxpr, whose equations carry the user's lines, and each equation is evaluated on its own:
loops are unrolled, branches taken, calls entered. An equation whose result is not finite becomes an event; its parents
are the events of its non-finite inputs. Infinities that the program writes itself (masks) and that are swallowed again
reach nothing. Nothing here is needed while a training runs.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_EQUATIONS = 400_000
"""Equations that are evaluated before the replay gives up (a minute or two on one core)."""
CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "custom_lin": "jaxpr",
}
"""Primitives that only call another program, and the parameter that holds it (JAX 0.4 to 0.10)."""


@dataclass(slots=True)
class Event:
    """An equation whose result is not finite."""

    number: int
    op: str
    nan: bool
    path: str | None
    line: int | None
    function: str | None
    inputs: list[dict[str, Any]]
    written: bool
    """True where the infinity is a constant of the program that this equation only spreads."""
    parents: list[Event] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    """Names of non-finite arguments that went in."""


class Exhausted(Exception):
    """The program has more equations than a replay takes."""


@dataclass(slots=True)
class _Value:
    """An array, the event that made it non-finite, the argument that it is, and whether it is a constant."""

    array: Any
    event: Event | None = None
    argument: str | None = None
    constant: bool = False


class Tracer:
    """Evaluates jaxprs and keeps what was not finite. ``run`` returns the values of the outputs with their events."""

    def __init__(self) -> None:
        self.equations = 0
        self._jax: Any = importlib.import_module("jax")
        self._np: Any = importlib.import_module("numpy")

    def run(self, function: Callable[..., Any], arguments: Sequence[Any], names: Sequence[str]) -> list[_Value]:
        """Evaluate ``function`` on flat ``arguments``. Raises Exhausted, and whatever JAX raises."""
        closed = self._jax.make_jaxpr(function)(*arguments)
        values = [
            _Value(a, argument=None if _finite(self._np, a) else name) for a, name in zip(arguments, names, strict=True)
        ]
        return self._evaluate(closed.jaxpr, closed.consts, values)

    def _evaluate(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[_Value]) -> list[_Value]:
        held: dict[Any, _Value] = {}
        for variable, value in zip(jaxpr.constvars, constants, strict=True):
            held[variable] = value if isinstance(value, _Value) else _Value(value, constant=True)
        held.update(zip(jaxpr.invars, arguments, strict=True))

        def read(atom: Any) -> _Value:
            # Literals can't be hashed; they are told by their type's name, the same in every release.
            return _Value(atom.val, constant=True) if type(atom).__name__ == "Literal" else held[atom]

        for equation in jaxpr.eqns:
            self.equations += 1
            if self.equations > MAX_EQUATIONS:
                raise Exhausted
            inputs = [read(atom) for atom in equation.invars]
            held.update(zip(equation.outvars, self._one(equation, inputs), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _one(self, equation: Any, inputs: list[_Value]) -> list[_Value]:
        name = equation.primitive.name
        if name in CALLS and CALLS[name] in equation.params:
            return self._enter(equation.params[CALLS[name]], inputs)
        if name == "cond":
            branches = equation.params["branches"]
            chosen = int(self._np.clip(int(inputs[0].array), 0, len(branches) - 1))
            return self._enter(branches[chosen], inputs[1:])
        if name == "while":
            return self._while(equation.params, inputs)
        if name == "scan":
            return self._scan(equation.params, inputs)
        return self._bind(equation, inputs)

    def _enter(self, program: Any, inputs: Sequence[_Value]) -> list[_Value]:
        inner = getattr(program, "jaxpr", program)
        return self._evaluate(inner, getattr(program, "consts", ()), inputs)

    def _while(self, params: dict[str, Any], inputs: list[_Value]) -> list[_Value]:
        split, end = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        test, body, carried = inputs[:split], inputs[split:end], inputs[end:]
        while bool(self._enter(params["cond_jaxpr"], [*test, *carried])[0].array):
            carried = self._enter(params["body_jaxpr"], [*body, *carried])
        return carried

    def _scan(self, params: dict[str, Any], inputs: list[_Value]) -> list[_Value]:
        constants, carries = params["num_consts"], params["num_carry"]
        fixed, carried, over = (
            inputs[:constants],
            inputs[constants : constants + carries],
            inputs[constants + carries :],
        )
        order = range(params["length"])
        gathered: list[list[_Value]] = []
        for index in reversed(order) if params["reverse"] else order:
            slices = [_Value(v.array[index], v.event, v.argument, v.constant) for v in over]
            out = self._enter(params["jaxpr"], [*fixed, *carried, *slices])
            carried, rest = out[:carries], out[carries:]
            gathered.append(rest)
        if params["reverse"]:
            gathered.reverse()
        stacked = []
        for column in zip(*gathered, strict=True):
            array = self._jax.numpy.stack([v.array for v in column])
            stacked.append(_Value(array, next((v.event for v in column if v.event is not None), None)))
        return [*carried, *stacked]

    def _bind(self, equation: Any, inputs: list[_Value]) -> list[_Value]:
        primitive = equation.primitive
        given = primitive.get_bind_params(equation.params)
        # Releases before 0.8 hand functions back beside the parameters.
        functions, params = given if isinstance(given, tuple) else ((), given)
        found = primitive.bind(*functions, *[v.array for v in inputs], **params)
        outputs = list(found) if primitive.multiple_results else [found]
        broken = [o for o in outputs if not _finite(self._np, o)]
        if not broken:
            return [_Value(o) for o in outputs]
        event = self._event(equation, inputs, broken)
        return [_Value(o, None if _finite(self._np, o) else event) for o in outputs]

    def _event(self, equation: Any, inputs: list[_Value], broken: list[Any]) -> Event:
        place = _place(equation.source_info)
        infinite = [v for v in inputs if not _finite(self._np, v.array)]
        return Event(
            self.equations,
            equation.primitive.name,
            any(bool(self._np.isnan(_real(self._np, o)).any()) for o in broken),
            *place,
            [_range(self._np, v.array) for v in inputs],
            bool(infinite) and all(v.constant or (v.event is not None and v.event.written) for v in infinite),
            [v.event for v in infinite if v.event is not None],
            [v.argument for v in infinite if v.argument is not None],
        )


def origin(outputs: Sequence[_Value]) -> tuple[Event | None, list[str]]:
    """The event to name for non-finite ``outputs`` (the first of them that has one), and arguments to blame instead.

    The earliest birth among the ancestors: finite inputs gave a non-finite result. Where only infinities that the
    program wrote lie behind it, the first event that made NaN of them.
    """
    for output in outputs:
        if output.argument is not None:
            return None, [output.argument]
        if output.event is None:
            continue
        line = sorted(_ancestors(output.event), key=lambda e: e.number)
        arguments = [name for e in line for name in e.outside]
        if arguments:
            return None, list(dict.fromkeys(arguments))
        births = [e for e in line if not e.parents and not e.written]
        turned = [e for e in line if e.nan]
        return (births or turned or line)[0], []
    return None, []


def _ancestors(event: Event) -> Iterator[Event]:
    seen: set[int] = set()
    todo = [event]
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            todo += one.parents


def _place(source: Any) -> tuple[str | None, int | None, str | None]:
    """Path, line and function of the user's code behind an equation; JAX keeps its reading of it internal."""
    try:
        frame = importlib.import_module("jax._src.source_info_util").user_frame(source.traceback)
        return (frame.file_name, frame.start_line, frame.function_name) if frame is not None else (None, None, None)
    except Exception:  # An internal of JAX: in a release where it is elsewhere the place is not told.
        return None, None, None


def _real(np: Any, value: Any) -> Any:
    """``value`` as numbers that numpy can look at (half-sized floats are widened)."""
    array = np.asarray(value)
    if array.dtype.kind in "iub":
        return array
    return array if array.dtype.kind in "fc" and array.dtype.itemsize >= 4 else array.astype(np.float32)


def _finite(np: Any, value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "name", "")
    if isinstance(value, float):
        return math.isfinite(value)
    if not kind.startswith(("float", "bfloat", "complex")):
        return True
    return bool(np.isfinite(_real(np, value)).all())


def _range(np: Any, value: Any) -> dict[str, Any]:
    """Shape, dtype, least and greatest finite value, zeros and non-finite entries of an input."""
    dtype = str(getattr(value, "dtype", type(value).__name__))
    found: dict[str, Any] = {"shape": list(getattr(value, "shape", ())), "dtype": dtype}
    try:
        array = np.asarray(_real(np, value), dtype=np.float64)
    except (TypeError, ValueError):
        return found
    good = array[np.isfinite(array)]
    if good.size:
        found |= {"min": float(good.min()), "max": float(good.max()), "zeros": int((good == 0).sum())}
    if good.size != array.size:
        found["nonfinite"] = int(array.size - good.size)
    return found


def relative(path: str | None) -> str | None:
    """``path`` from the working directory, if it lies below it."""
    if path is None:
        return None
    here = os.getcwd() + os.sep
    return os.path.abspath(path).removeprefix(here).replace(os.sep, "/")
