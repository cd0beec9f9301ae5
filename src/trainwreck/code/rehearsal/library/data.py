"""Data sets, loaders, samplers and splits: what one element of them holds, and where it came from."""

from __future__ import annotations

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import (
    UNKNOWN,
    Bound,
    Function,
    Items,
    Node,
    Obj,
    Place,
    Table,
    Value,
)
from trainwreck.code.rehearsal.library import function, method
from trainwreck.code.rehearsal.rehearsing import Rehearsing

LOADERS = ("DataLoader", "StatefulDataLoader", "MultiEpochsDataLoader")


@function("torch.utils.data.random_split")
def _random_split(run: Rehearsing, asked: Asked) -> Value:
    dataset, lengths = asked.get("dataset", 0, UNKNOWN), asked.get("lengths", 1, UNKNOWN)
    items, _ = run.elements(lengths, asked.place, asked.frame)
    made = []
    for number in range(len(items) if items else 2):
        indices = run.node("split", (lengths, number), asked.place, name=str(number))
        made.append(run.thing("torch.utils.data.Subset", (dataset, indices), {}, asked.place))
    return Items(made)


@function("sklearn.model_selection.train_test_split")
def _train_test_split(run: Rehearsing, asked: Asked) -> Value:
    made: list[Value] = []
    for array in asked.args:
        for side in ("0", "1"):
            made.append(run.node("split", (array,), asked.place, dict(asked.options), full=asked.full, name=side))
    return Items(made)


@function("pandas.DataFrame", "pandas.Series")
def _frame(run: Rehearsing, asked: Asked) -> Value:
    """A table is an array whose columns have names."""
    return run.node(asked.name, asked.given, asked.place, dict(asked.options), full=asked.full)


@method("estimator", "fit", "partial_fit", "set_params", "set_output")
def _fitted(run: Rehearsing, asked: Asked) -> Value:
    """Scikit-learn's objects give themselves back."""
    run.event(asked.name, asked.receiver, asked.args, asked.options, asked.place)
    return asked.receiver


def batch(run: Rehearsing, loader: Obj, place: Place) -> Value:
    """One batch of a loader."""
    from trainwreck.code.rehearsal.domain import Frame

    dataset = loader.get("dataset", 0, UNKNOWN)
    frame = Frame(place[1], {})
    element = example(run, dataset, place, frame)
    collate = loader.options.get("collate_fn")
    if collate is not None:
        gathered = run.call(collate, [Items([element], True)], {}, place, frame)
        return batched(run, gathered, loader, place, stacked=False)
    return batched(run, element, loader, place)


def _one_by_one(loader: Obj) -> bool:
    """True for batches of one example each."""
    return (
        loader.name == "DataLoader" and loader.get("batch_size", 1, 1) == 1 and not loader.options.get("batch_sampler")
    )


def batched(run: Rehearsing, value: Value, loader: Obj, place: Place, *, stacked: bool = True) -> Value:
    """The elements of a batch, each marked with the loader that it comes from."""
    match value:
        case tuple():
            return tuple(batched(run, v, loader, place, stacked=stacked) for v in value)
        case Items() if stacked or not value.more or all(_gathers(v) for v in value.items):
            return Items([batched(run, v, loader, place, stacked=stacked) for v in value.items], value.more)
        case Table():
            return Table(
                {k: batched(run, v, loader, place, stacked=stacked) for k, v in value.entries.items()}, value.more
            )
        case Node() | int() | float() | bool() | str():
            shape = value.shape if isinstance(value, Node) else UNKNOWN.shape
            if stacked and not shape.open:
                from trainwreck.code.shapes.domain import Shape

                shape = Shape((1 if _one_by_one(loader) else None, *shape.dims), False, shape.by)
            return run.node("batch", (value,), place, owner=loader, grad=False, shape=shape)
    return run.node("batch", (value,), place, owner=loader, grad=False)


def _gathers(value: Value) -> bool:
    """True for an array of all samples of a batch: ``[torch.stack(column) for column in zip(*rows)]``."""
    return isinstance(value, Node) and value.op in ("stack", "pad_sequence", "cat", "concatenate", "default_collate")


def example(run: Rehearsing, dataset: Value, place: Place, frame: object, within: Value = None) -> Value:
    """One element of a data set; ``within`` are the numbers among which its number is (of a ``Subset``)."""
    from trainwreck.code.rehearsal.domain import Frame, candidates

    assert isinstance(frame, Frame)
    dataset = next((c for c in candidates(dataset) if c is not None), UNKNOWN)
    if isinstance(dataset, Obj):
        if dataset.cls is not None:
            getter = dataset.cls.find("__getitem__")
            if isinstance(getter, Function):
                index = run.node("index", () if within is None else (within,), place, owner=dataset)
                return run.call(Bound(getter, dataset), [index], {}, place, frame)
            walker = dataset.cls.find("__iter__")
            if isinstance(walker, Function):
                found = run.call(Bound(walker, dataset), [], {}, place, frame)
                items, _ = run.elements(found, place, frame)
                return items[0] if items else run.node("example", (dataset,), place, owner=dataset)
        if dataset.name == "TensorDataset":
            return tuple(_row(run, t, place, within) for t in dataset.args)
        if dataset.name == "Subset":
            inner = dataset.get("indices", 1, UNKNOWN)
            inner = inner if within is None else run.node("getitem", (inner, within), dataset.place)
            return example(run, dataset.get("dataset", 0, UNKNOWN), dataset.place or place, frame, inner)
        if dataset.name == "ConcatDataset":
            items, _ = run.elements(dataset.get("datasets", 0, UNKNOWN), place, frame)
            return example(run, items[0] if items else UNKNOWN, place, frame)
    if isinstance(dataset, Items | tuple):
        items, _ = run.elements(dataset, place, frame)
        return items[0] if items else UNKNOWN
    if isinstance(dataset, Node):
        return _row(run, dataset, place, within)
    return run.node("example", (dataset,), place, grad=False)


def numbers_of(index: Value) -> Value:
    """The numbers that are gone through one by one where ``index`` is one of them."""
    return index.inputs[0] if isinstance(index, Node) and index.op == "element" and index.inputs else None


def _row(run: Rehearsing, value: Value, place: Place, within: Value) -> Value:
    from trainwreck.code.shapes.domain import ANY, Shape

    shape = ANY
    if isinstance(value, Node) and not value.shape.open and value.shape.dims:
        shape = Shape(value.shape.dims[1:], False, value.shape.by)
    given = (value,) if within is None else (value, run.node("index", (within,), place))
    return run.node("element", given, place, grad=False, shape=shape)
