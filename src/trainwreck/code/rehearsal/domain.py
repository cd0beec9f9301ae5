"""What the rehearsal knows of a value: where it was computed from, by what, and where in the program.

Python's own constants stand for themselves, tuples too. Everything else is one of the classes here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.shapes.domain import ANY, Shape

Value = Any
"""A constant, a tuple, or one of the classes below."""
Place = tuple[ast.AST, Scope]
"""A node of the program with the scope that it stands in (as ``sighting`` takes it)."""


@dataclass(frozen=True, eq=False, slots=True)
class Turn:
    """One turn of a loop: the statement, which turn (0, 1, ...), what is looped over, and if any turn is meant."""

    node: ast.AST
    scope: Scope
    index: int
    over: Value
    generic: bool


@dataclass(eq=False, slots=True)
class Node:
    """A value computed while the program runs: a tensor, an array, or a number that is not written out.

    ``op`` is the last part of what computed it (``softmax``, ``linear``, ``add``), ``full`` the whole dotted name
    where there is one. ``inputs`` are all that it was computed from, ``options`` the keyword arguments and those
    positional ones that are no data. ``grad``: it hangs in the graph of autograd. ``shape`` as far as known.
    """

    op: str
    inputs: tuple[Value, ...] = ()
    options: dict[str, Value] = field(default_factory=dict)
    place: Place | None = None
    stack: tuple[Place, ...] = ()
    grad: bool = False
    full: str = ""
    shape: Shape = ANY
    shapes: tuple[Shape, ...] = ()
    """Of a value that is a tuple (``chunk``, ``max`` along an axis): the shapes of its parts."""
    serial: int = 0
    owner: Obj | None = None
    """Of a parameter: the module that holds it; of a layer's output: the layer; of a batch: the loader."""
    name: str = ""
    trainable: bool | None = None
    """Of a parameter: ``requires_grad`` as it stands now; None where it can't be told."""
    writes: list[Event] = field(default_factory=list)
    """Of a parameter: what was written into it in place (``nn.init``, ``copy_``), in order."""
    turns: tuple[Turn, ...] = ()
    maybe: int = 0
    attributes: dict[str, Value] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.op}{' ' + self.name if self.name else ''}>"

    @property
    def unknown(self) -> bool:
        return self.op in ("unknown", "opaque")

    def get(self, name: str, position: int | None = None, default: Value = None) -> Value:
        """The option of this name, else the input at this position (0 is the tensor itself)."""
        if name in self.options:
            return self.options[name]
        return self.inputs[position] if position is not None and position < len(self.inputs) else default


UNKNOWN = Node("unknown")
NUMBERING = "?numbering"
"""Attribute of a number that was looked up: the ``Table`` that values of the data are numbered by."""
NUMBERED = "numbered"
"""Key in ``memo`` of what tables of numbers were filled from: by ``id`` the table and what was gone through."""
WRITTEN = "?written"
"""Attribute of a text: the values that it shows. They are no inputs: showing a value is no use of it."""
CHOSEN_BY = "?by"
"""Attribute of ``a if test else b``: the test, which is no input."""
DECIDED = "?decided"
"""Attribute of an element that was taken of each of two branches' values: what the branches met in."""
FLOOR = "?floor"
"""Attribute of the number of any later turn of a loop: the least that it can be."""


SOME = "some"
"""Kind of the ``Items`` of a slice with unknown ends: each of them may be in it."""
LEAF = "?leaf"
"""Attribute of a tensor that was told to take a gradient: a module does not register it as a parameter."""
LEFT_OF_OR = "left of or"
"""Key in ``memo`` of the values that an ``or`` came down to, since all else in it is false: each with the part of the
``or`` that gave it, and the place of the whole."""


@dataclass(frozen=True, eq=False, slots=True)
class NameTest:
    """A text that was looked for in another one, and whether it was there."""

    wanted: str
    text: str
    held: bool
    place: Place


ASKED = "name tests"
"""Key of the list of these tests in ``memo``."""
MOST_ASKED = 5_000


@dataclass(eq=False, slots=True)
class External:
    """A module, class or function of a library, by its dotted name."""

    dotted: str

    @property
    def name(self) -> str:
        return self.dotted.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"<{self.dotted}>"


@dataclass(eq=False, slots=True)
class Frame:
    """The names of one running function, class body, comprehension or module, and the frame around its definition."""

    scope: Scope
    names: dict[str, Value]
    parent: Frame | None = None
    kind: str = "function"
    outer: set[str] = field(default_factory=set)
    returned: list[Value] = field(default_factory=list)
    yielded: list[Value] | None = None
    on_yield: Any = None
    pace: Value = None
    """What the loop goes through, each turn of which yields once."""
    receiver: Value = None
    function: Function | None = None

    @property
    def module(self) -> Frame:
        at = self
        while at.parent is not None:
            at = at.parent
        return at


@dataclass(eq=False, slots=True)
class Function:
    """A function of the program with the frame that it was defined in."""

    node: FunctionNode | ast.Lambda
    scope: Scope
    frame: Frame
    owner: Class | None = None
    kind: str = "function"
    """``function``, ``property``, ``static``, ``class`` or ``context`` (a ``contextmanager``)."""
    no_grad: bool = False
    with_grad: bool = False
    """It runs under ``enable_grad``, wherever it is called."""
    defaults: dict[str, Value] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    def __repr__(self) -> str:
        return f"<function {self.name}>"


@dataclass(eq=False, slots=True)
class Class:
    """A class of the program. ``bases`` are classes of the program or ``External``."""

    name: str
    scope: Scope
    bases: Sequence[Value]
    names: dict[str, Value]
    frame: Frame
    dataclass: bool = False

    def mro(self) -> Iterator[Class]:
        seen: list[Class] = []
        stack: list[Value] = [self]
        while stack:
            at = stack.pop(0)
            if isinstance(at, Class) and at not in seen:
                seen.append(at)
                yield at
                stack[:0] = list(at.bases)

    def external(self) -> list[str]:
        """Dotted names of the library classes that it derives from."""
        return [b.dotted for c in self.mro() for b in c.bases if isinstance(b, External)]

    def find(self, name: str) -> Value:
        """What the class or a base of the program holds under ``name``; None where nothing."""
        return next((c.names[name] for c in self.mro() if name in c.names), None)

    def __repr__(self) -> str:
        return f"<class {self.name}>"


@dataclass(eq=False, slots=True)
class Obj:
    """An object: of a class of the program (``cls``), or of a library (``kind`` is the dotted name of what made it)."""

    kind: str
    cls: Class | None = None
    args: tuple[Value, ...] = ()
    options: dict[str, Value] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    place: Place | None = None
    stack: tuple[Place, ...] = ()
    serial: int = 0
    training: bool | None = True
    turns: tuple[Turn, ...] = ()
    maybe: int = 0
    copy_of: Obj | None = None
    own: dict[str, Node] | None = None
    """Parameters that a layer of torch made itself."""
    groups: Items | None = None
    """Of an optimizer: its parameter groups."""

    @property
    def name(self) -> str:
        """The last part of its kind."""
        return self.kind.rpartition(".")[2]

    def get(self, name: str, position: int | None = None, default: Value = None) -> Value:
        """The argument that it was made with."""
        if name in self.options:
            return self.options[name]
        return self.args[position] if position is not None and position < len(self.args) else default

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass(eq=False, slots=True)
class Items:
    """A list, a set or an iterator. ``more``: there may be further elements of the same kind."""

    items: list[Value]
    more: bool = False
    kind: str = "list"
    place: Place | None = None
    """Where it was written out or gathered."""
    length: int | None = None
    """How many elements there are where not all are in ``items`` (a long ``range``); None where it isn't known."""
    source: Value = None
    """What it goes through (``enumerate(loader)``)."""
    columns: tuple[Value, ...] = ()
    """What is gone through beside each other and ends it (``zip``): the shortest of them."""
    pace: Value = None
    """Of a generator that yields once in each turn of one loop: what that loop goes through."""


@dataclass(eq=False, slots=True)
class Table:
    """A dict. ``more``: it may hold further entries. ``factory``: what makes an entry that is asked for first."""

    entries: dict[Value, Value]
    more: bool = False
    factory: Value = None
    numbered: Place | None = None
    """Where it was made, of one that gives each value that occurs in data a number of its own."""
    stack: tuple[Place, ...] = ()
    """The calls that led there."""
    counted: tuple[Value, ...] = ()
    """The values of the data that have the numbers."""


@dataclass(eq=False, slots=True)
class Bound:
    """A method of an object of the program."""

    function: Function
    receiver: Value


@dataclass(eq=False, slots=True)
class Method:
    """A method of a library's object or of a value: name and receiver."""

    name: str
    receiver: Value


@dataclass(eq=False, slots=True)
class Event:
    """Something that was called on an object of a library, or a function of a library that is called for its effect.

    ``name`` is the method (``step``, ``backward``, ``zero_grad``, ``train``), ``subject`` its receiver (None for a
    function), ``full`` the dotted name of a function.
    """

    name: str
    subject: Value
    args: tuple[Value, ...]
    options: dict[str, Value]
    place: Place | None
    stack: tuple[Place, ...]
    turns: tuple[Turn, ...]
    maybe: int
    """How many branches around it may not be taken."""
    grad_mode: bool
    serial: int
    full: str = ""
    result: Value = None
    state: dict[str, Value] = field(default_factory=dict)
    """What held at that moment: for ``backward`` the parameters reached, for ``forward`` the mode of the module."""
    tests: tuple[Value, ...] = ()
    """Tests of unknown outcome that decide whether it happens, also those of an earlier ``continue``."""

    def get(self, name: str, position: int | None = None, default: Value = None) -> Value:
        if name in self.options:
            return self.options[name]
        return self.args[position] if position is not None and position < len(self.args) else default

    def __repr__(self) -> str:
        line = getattr(self.place[0], "lineno", 0) if self.place else 0
        return f"<{self.name} {self.subject!r} line {line}>"


def candidates(value: Value) -> list[Value]:
    """The values that ``value`` may be: one, or those of the branches that met."""
    if isinstance(value, Node) and value.op == "either":
        return [c for v in value.inputs for c in candidates(v)]
    return [value]


def is_module(value: Value) -> bool:
    """True for an object that derives from ``torch.nn.Module`` as far as the program says."""
    if not isinstance(value, Obj):
        return False
    if value.cls is not None:
        return any(
            base.rpartition(".")[2] in MODULE_BASES or base.startswith("torch.nn.") for base in value.cls.external()
        )
    if value.kind == "torch.optim.swa_utils.AveragedModel":
        return True
    return value.kind.startswith("torch.nn.") and value.name[:1].isupper() and value.name != "Parameter"


MODULE_BASES = frozenset(
    ["Module", "LightningModule", "PreTrainedModel", "Sequential", "ModuleList", "ModuleDict", "PyTorchModelHubMixin"]
)
