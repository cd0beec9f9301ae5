"""Indices, methods of tensors and lists, built-in functions, data sets and loaders for the shape reading."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.shapes.asked import Asked
from trainwreck.code.shapes.domain import (
    ANY,
    INDEX,
    MANY,
    UNKNOWN,
    Dim,
    Instance,
    Items,
    Layer,
    Shape,
    Source,
    Value,
    size,
    sliced,
)
from trainwreck.code.shapes.functions import computed
from trainwreck.code.shapes.joins import CREATES, created
from trainwreck.code.shapes.reading import Frame

if TYPE_CHECKING:
    from trainwreck.code.shapes.expressions import Reading

HARMLESS = frozenset(["no_grad", "inference_mode", "staticmethod", "torch_no_grad", "override", "cache", "lru_cache"])
"""Decorators that leave what a function returns as it is."""
SOURCES = frozenset(
    ["torch.utils.data.TensorDataset", "torch.utils.data.DataLoader", "torch.utils.data.Subset"]
    + ["torch.utils.data.random_split", "torch.utils.data.ConcatDataset"]
    + [f"torchvision.datasets.{n}" for n in ("MNIST", "FashionMNIST", "KMNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10")]
)
IMAGES = {"MNIST": (1, 28), "FashionMNIST": (1, 28), "KMNIST": (1, 28), "CIFAR10": (3, 32), "CIFAR100": (3, 32)}
IMAGES |= {"SVHN": (3, 32), "STL10": (3, 96)}
"""Channels and side of the square images of torchvision's small data sets."""
PASSES = frozenset(
    [
        "ToTensor",
        "Normalize",
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "RandomRotation",
        "ColorJitter",
        "RandomErasing",
        "RandomAffine",
        "ConvertImageDtype",
        "ToDtype",
        "ToImage",
        "AutoAugment",
        "RandAugment",
        "TrivialAugmentWide",
        "GaussianBlur",
        "RandomGrayscale",
    ]
)
"""Transforms of torchvision that keep the size of an image."""
MAX_RANGE = 64


def rebound(project: Project) -> frozenset[str]:
    """Attributes that are set from outside (``model.fc = ...``, ``setattr``); they may hold anything."""
    if "shapes: rebound" not in project.memo:
        names: set[str] = set()
        for scope in project.scopes:
            names |= {n.split(".", 1)[1] for n in scope.bindings if "." in n}
        project.memo["shapes: rebound"] = frozenset(names)
    found: frozenset[str] = project.memo["shapes: rebound"]
    return found


def forget_rewritten(project: Project, instance: Instance) -> None:
    """Attributes that a method writes which did not run with ``__init__`` are unknown."""
    for owner in project.bases(instance.owner):
        for name, bindings in owner.attributes.items():
            if any(b.kind != "append" and id(b.scope) not in instance.executed for b in bindings):
                instance.attributes[name] = UNKNOWN


def layers_of(layer: Layer) -> list[Value] | None:
    """The parts of a ``Sequential`` or ``ModuleList``; None where they can't be listed."""
    found: list[Value] = list(layer.args)
    if layer.name == "ModuleList" or (len(found) == 1 and not isinstance(found[0], Layer | Instance)):
        if len(found) != 1 or not isinstance(found[0], Items | tuple):
            return None
        found = list(found[0].items) if isinstance(found[0], Items) else list(found[0])
    return None if layer.options or MANY in found else found


def element(reading: Reading, value: Value) -> Value:
    """What one turn of a loop over ``value`` gets."""
    if isinstance(value, Source):
        return value.element
    if isinstance(value, Shape) and not value.open and value.dims:
        return Shape(value.dims[1:], False, value.by)
    return UNKNOWN


def batched(value: Value) -> Value:
    """One sample with a batch axis of unknown size before it."""
    if isinstance(value, Shape):
        return ANY if value.open else Shape((None, *value.dims), False, value.by)
    if isinstance(value, tuple):
        return tuple(batched(v) for v in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Shape((None,))
    return UNKNOWN


def sampled(reading: Reading, args: list[Value]) -> list[Value]:
    """The arguments with a data set of the program (the first one) as what its ``__getitem__`` gives."""
    first = args[0] if args else UNKNOWN
    if not isinstance(first, Instance):
        return args
    getter = reading.project.find_method(first.owner, "__getitem__")
    if getter is None:
        return args
    frame = Frame(getter, {}, None, None, 1)
    return [Source(reading.run(getter, [INDEX], {}, first, frame)), *args[1:]]


def source(project: Project, full: str, call: Call, args: list[Value], options: dict[str, Value]) -> Value:
    """A data set or loader of torch or torchvision."""
    name = full.rsplit(".", 1)[-1]
    if name == "TensorDataset":
        return Source(tuple(element_of(a) for a in args))
    first = args[0] if args else options.get("dataset", UNKNOWN)
    if name == "DataLoader":
        if "collate_fn" in options or "batch_sampler" in options or not isinstance(first, Source):
            return UNKNOWN
        return Source(batched(first.element)) if options.get("batch_size", 1) is not None else UNKNOWN
    if name == "random_split":
        return _halves(first, args)
    if name in IMAGES:
        image = _image(project, name, call)
        return Source((image, Shape(()))) if image is not None else UNKNOWN
    return first if name == "Subset" and isinstance(first, Source) else UNKNOWN


def _halves(first: Value, args: Sequence[Value]) -> Value:
    sizes = args[1] if len(args) > 1 else UNKNOWN
    count = len(sizes.items) if isinstance(sizes, Items) else len(sizes) if isinstance(sizes, tuple) else 0
    return (first,) * count if count and isinstance(first, Source) else UNKNOWN


def element_of(value: Value) -> Value:
    return (
        Shape(value.dims[1:], False, value.by)
        if isinstance(value, Shape) and not value.open and value.dims
        else UNKNOWN
    )


def _image(project: Project, name: str, call: Call) -> Shape | None:
    """The shape of one image after its transforms, None where one of them is not known here."""
    transform = call.argument("transform", 2)
    if transform is None:
        return None
    from trainwreck.code.facts import made
    from trainwreck.code.values import values

    channels: Dim
    channels, side = IMAGES[name]
    height: Dim = side
    width: Dim = side
    composed = [c for c in made(project, transform, call.scope) if c.name in ("Compose", *PASSES)]
    if len(composed) != 1:
        return None
    steps: list[Call] = [composed[0]]
    if composed[0].name == "Compose":
        listed = composed[0].node.args[0] if composed[0].node.args else None
        if not isinstance(listed, ast.List) or not all(isinstance(e, ast.Call) for e in listed.elts):
            return None
        steps = [Call(e, composed[0].scope) for e in listed.elts if isinstance(e, ast.Call)]
    if not any(s.name in ("ToTensor", "ToImage", "PILToTensor") for s in steps):
        return None
    for step in steps:
        given = step.argument("size", 0)
        sizes = [k.value for k in values(project, given, step.scope)] if given is not None else []
        if step.name in ("Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop") and len(sizes) == 1:
            one = sizes[0]
            height, width = one if isinstance(one, tuple) and len(one) == 2 else (one, one)
        elif step.name == "Grayscale":
            count = [k.value for k in values(project, step.argument("num_output_channels", 0), step.scope)]
            channels = count[0] if len(count) == 1 else (1 if step.argument("num_output_channels", 0) is None else None)
        elif step.name not in PASSES:
            return None
    return Shape((size(channels), size(height), size(width)), False, call)


def literal_shape(value: Value, call: Call) -> Value:
    """The shape of a tensor made from a nested list of numbers."""
    if isinstance(value, Shape):
        return value
    dims: list[Dim] = []
    while isinstance(value, Items | tuple):
        items = value.items if isinstance(value, Items) else value
        if not items:
            return ANY
        dims.append(len(items))
        value = items[0]
    if isinstance(value, Shape):
        return ANY if value.open else Shape((*dims, *value.dims), False, call)
    return Shape(tuple(dims), False, call) if isinstance(value, int | float) else ANY


def indexed(reading: Reading, shape: Shape, index: ast.expr, frame: Frame) -> Value:
    """``x[i]``, ``x[:, 0]``, ``x[..., None]``, ``x[rows]``."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(p, ast.Constant) and p.value is Ellipsis for p in parts):
        at = next(i for i, p in enumerate(parts) if isinstance(p, ast.Constant) and p.value is Ellipsis)
        taken = sum(not (isinstance(p, ast.Constant) and p.value is None) for p in parts) - 1
        if at == 0 and taken <= len(shape.dims):
            cut = len(shape.dims) - taken
            tail = _axes(reading, shape.dims[cut:], parts[1:], frame)
            return ANY if tail is None else Shape((*shape.dims[:cut], *tail), shape.open, shape.by)
        return ANY
    if shape.open:
        return ANY
    dims = _axes(reading, shape.dims, parts, frame)
    return ANY if dims is None else Shape(dims, False, shape.by)


def _axes(reading: Reading, dims: tuple[Dim, ...], parts: list[ast.expr], frame: Frame) -> tuple[Dim, ...] | None:
    """The axes that remain after the parts of an index."""
    found: list[Dim] = []
    place = 0
    lookups = 0
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            found.append(1)
            continue
        if place >= len(dims):
            return None
        if isinstance(part, ast.Slice):
            found.append(_sliced(reading, dims[place], part, frame))
        else:
            value = reading.value(part, frame)
            if isinstance(value, Shape) and not value.open and not isinstance(part, ast.Compare):
                lookups += 1
                if lookups > 1 or len(parts) > 1:
                    return None
                if len(value.dims) > 1:
                    return None  # a mask takes as many axes away as an index of numbers adds
                found += [None] * len(value.dims)
            elif size(value) is None and value is not INDEX:
                return None
        place += 1
    return (*found, *dims[place:])


def _sliced(reading: Reading, dim: Dim, part: ast.Slice, frame: Frame) -> Dim:
    ends = [reading.value(p, frame) if p is not None else None for p in (part.lower, part.upper, part.step)]
    return sliced(dim, ends)


def method(
    reading: Reading, base: Value, name: str, call: Call, args: list[Value], options: dict[str, Value]
) -> Value | None:
    """A method of a tensor, a list or a layer; None where ``base`` is none of these."""
    if isinstance(base, Shape):
        if name in ("size",):
            if not args:
                return UNKNOWN if base.open else tuple(UNKNOWN if d is None else d for d in base.dims)
            known = base.dim(args[0]) if isinstance(args[0], int) else None
            return UNKNOWN if known is None else known
        if name in ("dim", "ndimension"):
            return UNKNOWN if base.open else len(base.dims)
        if name in ("numel", "nelement"):
            return UNKNOWN if base.total is None else base.total
        if name in ("item", "tolist", "backward"):
            return UNKNOWN
        done = computed(Asked(name, base, args, options, call, reading.report))
        return ANY if done is UNKNOWN else done
    if isinstance(base, Items):
        return _list_method(base, name, args)
    if isinstance(base, Layer) and base.name in ("ModuleList", "Sequential") and name == "append":
        return UNKNOWN
    if isinstance(base, Layer | Instance) and name in (
        "to", "cuda", "cpu", "half", "float", "double", "train", "eval", "requires_grad_", "bfloat16"
    ):  # fmt: skip
        return base
    if base is UNKNOWN and name in CREATES and ("size" in options or name in ("random", "standard_normal", "integers")):
        return created(name, args, options, call, True)
    return None


def _list_method(base: Items, name: str, args: list[Value]) -> Value:
    if name == "append" and len(args) == 1:
        base.items.append(args[0])
        return UNKNOWN
    if name == "extend" and len(args) == 1:
        more = args[0].items if isinstance(args[0], Items) else args[0] if isinstance(args[0], tuple) else None
        base.items.extend(more if more is not None else [MANY])
        return UNKNOWN
    if name in ("insert", "pop", "remove", "reverse", "clear", "sort"):
        base.items[:] = [MANY]
        return UNKNOWN
    return UNKNOWN


def builtin(reading: Reading, name: str, args: list[Value]) -> Value:
    """Built-in functions of numbers and lists."""
    first = args[0] if args else UNKNOWN
    items = reading.iterated(first)
    if name == "len":
        if isinstance(first, Shape) and not first.open and first.dims:
            return UNKNOWN if first.dims[0] is None else first.dims[0]
        return len(items) if items is not None else UNKNOWN
    if name == "range" and args and all(size(a) is not None for a in args):
        turns = range(*args) if len(args) < 3 or args[2] else range(0)
        return UNKNOWN if turns[MAX_RANGE:] else tuple(turns)  # a range may be longer than len() can say
    if name in ("int", "float", "bool") and isinstance(first, int | float):
        return {"int": int, "float": float, "bool": bool}[name](first)
    if name in ("list", "tuple", "reversed") and items is not None:
        return Items(list(items)) if name == "list" else tuple(items if name == "tuple" else reversed(items))
    if name == "enumerate" and items is not None and len(args) == 1:
        return tuple(enumerate(items))
    if name == "enumerate" and isinstance(first, Source):
        return Source((UNKNOWN, first.element))
    if name in ("tqdm", "iter") and isinstance(first, Source):
        return first
    if name == "next" and isinstance(first, Source):
        return first.element
    if name == "zip" and all(isinstance(a, Items | tuple) for a in args):
        return tuple(zip(*(a.items if isinstance(a, Items) else a for a in args), strict=False))
    if name in ("sum", "max", "min") and items and all(size(i) is not None for i in items):
        sizes = [size(i) or 0 for i in items]
        return sum(sizes) if name == "sum" else max(sizes) if name == "max" else min(sizes)
    return UNKNOWN
