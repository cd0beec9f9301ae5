"""What the rehearsal carries along: the tape of events, the budget, loops, branches, the mode of autograd."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Turn, Value
from trainwreck.code.rehearsal.shaping import shape_of
from trainwreck.code.shapes.domain import ANY, Clash, Shape

MAX_STEPS = 60_000
"""Expressions that are evaluated for one entry: about 0.3 s. A script of 300 lines takes about 5,000."""
MAX_TAPE = 8_000
MAX_PARAMETERS = 400
"""Parameters of a model that are gone through one by one, and kept in lists."""
MAX_DEPTH = 40
"""Calls within calls; a program that nests deeper recurses."""


class Spent(Exception):
    """The budget is used up; what was recorded until then stays."""


NO_GRADIENT = frozenset(
    [
        "argmax",
        "argmin",
        "argsort",
        "compare",
        "detach",
        "detach_",
        "item",
        "numpy",
        "tolist",
        "long",
        "int",
        "bool",
        "byte",
        "short",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "isnan",
        "isinf",
        "isfinite",
        "all",
        "any",
        "nonzero",
        "bincount",
        "one_hot",
        "randn_like",
        "rand_like",
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "randint_like",
        "multinomial",
        "bernoulli",
        "numel",
        "size",
        "len",
        "searchsorted",
        "bucketize",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "new_tensor",
        "floor_divide",
        "histc",
        "unique",
        "sign",
        "float_value",
        "range",
    ]
)
"""What gives a value that hangs in no graph, whatever it was computed from."""


class State:
    """One rehearsal of one entry of the program."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.memo: dict[str, Any] = {}
        """What questions found out, by their own key."""
        self.tape: list[Event] = []
        self.nodes: list[Node] = []
        """Every tensor or number that was computed, in order."""
        self.clashes: list[Clash] = []
        """Shapes that do not fit, where they met."""
        self.objects: list[Obj] = []
        self.switched: dict[int, tuple[Obj, bool | None]] = {}
        """Modules whose mode was ever set, with the mode before."""
        self.steps = 0
        self.serial = 0
        self.maybe = 0
        self.tests: tuple[Value, ...] = ()
        self.left: Value = None
        """The test of the branch that was just left by a ``continue`` in one of its ways."""
        self.turns: tuple[Turn, ...] = ()
        self.stack: tuple[Place, ...] = ()
        self.handed_back: dict[int, Node] = {}
        """Of the function that ran last: what it was handed (by ``id``) and wrote into, and what that is since."""
        self.grad_mode = True
        self.modes: tuple[Value, ...] = ()
        """Context managers that are entered, innermost last."""
        self.inside: tuple[ast.AST, Callable[[Value], None]] | None = None
        """The expression of a ``with`` that is evaluated, and what runs its body: at the yield of its generator."""
        self.executed: set[int] = set()
        """``id`` of the nodes of functions that ran."""

    def tick(self) -> int:
        self.serial += 1
        return self.serial

    def spend(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS or len(self.tape) > MAX_TAPE:
            raise Spent

    def node(
        self,
        op: str,
        inputs: Sequence[Value] = (),
        place: Place | None = None,
        options: dict[str, Value] | None = None,
        *,
        full: str = "",
        grad: bool | None = None,
        shape: Shape = ANY,
        owner: Obj | None = None,
        name: str = "",
    ) -> Node:
        """A new value; ``grad`` follows from the inputs and the mode where it is not given."""
        if grad is None:
            grad = self.grad_mode and op not in NO_GRADIENT and any(hangs(i) for i in inputs)
        made = Node(
            op,
            tuple(inputs),
            options if options is not None else {},
            place,
            self.stack,
            grad,
            full,
            shape,
            (),
            self.tick(),
            owner,
            name,
            turns=self.turns,
            maybe=self.maybe,
        )
        if shape is ANY:
            made.shape, made.shapes = shape_of(made, self.clashes.append)
        self.nodes.append(made)
        return made

    def event(
        self,
        name: str,
        subject: Value,
        args: Sequence[Value] = (),
        options: dict[str, Value] | None = None,
        place: Place | None = None,
        *,
        full: str = "",
        result: Value = None,
        state: dict[str, Value] | None = None,
    ) -> Event:
        event = Event(
            name,
            subject,
            tuple(args),
            options if options is not None else {},
            place,
            self.stack,
            self.turns,
            self.maybe,
            self.grad_mode,
            self.tick(),
            full,
            result,
            state if state is not None else {},
            self.tests,
        )
        self.tape.append(event)
        return event

    def thing(
        self,
        kind: str,
        args: Sequence[Value] = (),
        options: dict[str, Value] | None = None,
        place: Place | None = None,
    ) -> Obj:
        """A new object of a library."""
        made = Obj(
            kind,
            None,
            tuple(args),
            options if options is not None else {},
            {},
            place,
            self.stack,
            self.tick(),
            turns=self.turns,
            maybe=self.maybe,
        )
        self.objects.append(made)
        return made

    def switch(self, module: Obj, mode: bool | None) -> None:
        """Put a module into training or evaluation."""
        self.switched.setdefault(id(module), (module, module.training))
        module.training = mode

    def training_modes(self) -> dict[int, bool | None]:
        """The mode of each module that was ever switched (by ``id``), as it stands."""
        return {key: module.training for key, (module, _) in self.switched.items()}

    def set_training_modes(self, modes: dict[int, bool | None]) -> None:
        """As it stood when ``modes`` was taken; what was switched since goes back to where it began."""
        for key, (module, first) in self.switched.items():
            module.training = modes.get(key, first)

    def join_training_modes(self, after: Sequence[dict[int, bool | None]]) -> None:
        """As branches left them: unknown where they differ."""
        for key, (module, first) in self.switched.items():
            left = [modes.get(key, first) for modes in after]
            if left:
                module.training = left[0] if all(mode is left[0] for mode in left) else None

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """What happens inside may not happen."""
        self.maybe += 1
        try:
            yield
        finally:
            self.maybe -= 1

    @contextmanager
    def turn(self, turn: Turn) -> Iterator[None]:
        before, self.turns = self.turns, (*self.turns, turn)
        try:
            yield
        finally:
            self.turns = before

    @contextmanager
    def at(self, place: Place | None) -> Iterator[None]:
        """Inside a call that stands at ``place``."""
        before = self.stack
        if place is not None:
            self.stack = (*before, place)
        try:
            yield
        finally:
            self.stack = before

    @contextmanager
    def grads(self, on: bool) -> Iterator[None]:
        before, self.grad_mode = self.grad_mode, on
        try:
            yield
        finally:
            self.grad_mode = before


def hangs(value: Value) -> bool:
    """True if a graph of autograd hangs on ``value`` (or on a part of it)."""
    match value:
        case Node():
            if value.op == "param":
                return value.trainable is not False
            return value.grad
        case tuple():
            return any(hangs(v) for v in value)
    items = getattr(value, "items", None)
    if isinstance(items, list):
        return any(hangs(v) for v in items)
    entries = getattr(value, "entries", None)
    if isinstance(entries, dict):
        return any(hangs(v) for v in entries.values())
    return False


def line_of(place: Place | None) -> int:
    return int(getattr(place[0], "lineno", 0)) if place is not None else 0
