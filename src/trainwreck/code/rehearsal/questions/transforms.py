"""Transforms of images in the way of torchvision: which ones does a data set go through, and for what is it used?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import evaluated, trained

HOME = "torchvision.transforms"
DISTORTS = pattern(
    r"^Random(?!Apply$|Choice$|Order$)|^ColorJitter$|^AutoAugment$|^TrivialAugment|^AugMix$|^RandAugment$"
)


def steps_of(transform: Value) -> list[Obj]:
    """The transforms of torchvision that ``transform`` goes through, in order."""
    if not isinstance(transform, Obj) or not transform.kind.startswith(HOME):
        return []
    if transform.name not in ("Compose", "RandomApply"):
        return [transform]
    listed = transform.get("transforms", 0)
    items = (
        listed.items if isinstance(listed, Items) and not listed.more else listed if isinstance(listed, tuple) else ()
    )
    return [step for item in items for step in steps_of(item)]


def base(dataset: Value) -> Value:
    """The data set of which ``dataset`` takes some rows."""
    for _ in range(5):
        if not isinstance(dataset, Obj) or dataset.name != "Subset" or not dataset.kind.startswith("torch."):
            return dataset
        dataset = dataset.get("dataset", 0)
    return dataset


def distorting(dataset: Value) -> Obj | None:
    """The random transform that every element of a data set of torchvision goes through."""
    if not isinstance(dataset, Obj) or not dataset.kind.startswith("torchvision.datasets."):
        return None
    transform = dataset.attributes.get("transform", dataset.options.get("transform"))
    return next((step for step in steps_of(transform) if DISTORTS.search(step.name)), None)


def shared_transform(run: Rehearsing) -> Iterator[Answer]:
    """One data set with random transforms, of which some rows are trained on and others evaluated."""
    taught = {id(base(d)) for d in _taught(run)}
    for dataset, place in _judged(run):
        whole = base(dataset)
        if whole is dataset or id(whole) not in taught or not isinstance(whole, Obj):
            continue
        drawn = distorting(whole) or _called(run, whole)
        places = [p for p in (whole.place, place) if p is not None]
        if drawn is not None and isinstance(dataset, Obj) and places:
            text = f"{drawn.name} distorts all images of this data set, those for the evaluation too"
            yield Answer(places[0], text, tuple(places[1:]))
            return


def _called(run: Rehearsing, dataset: Obj) -> Obj | None:
    """The random transform that a data set of the program calls in ``__getitem__``, whatever the element."""
    for node in run.nodes:
        owner = node.owner if node.op == "call" and not node.maybe and isinstance(node.owner, Obj) else None
        if owner is None or not any(v is owner for v in dataset.attributes.values()) or not _inside(node, dataset):
            continue
        found = next((s for s in steps_of(owner) if DISTORTS.search(s.name)), None)
        if found is not None:
            return found
    return None


def _inside(node: Node, dataset: Obj) -> bool:
    at: Place | None = node.place
    return at is not None and dataset.cls is not None and at[1].owner is dataset.cls.scope


def _taught(run: Rehearsing) -> Iterator[Value]:
    """The data sets that are trained on: behind a backward, or gone through by a loop around one."""
    for _, node in trained(run):
        yield from _datasets(node)
    for loader in _loaders(run, around=True):
        yield loader.get("dataset", 0)


def _judged(run: Rehearsing) -> Iterator[tuple[Value, Place | None]]:
    """The data sets that are evaluated on, or gone through by a loop that trains nothing; each with a place."""
    for event, node in evaluated(run):
        for dataset in _datasets(node):
            yield dataset, event.place
    for loader in _loaders(run, around=False):
        yield loader.get("dataset", 0), loader.place


def _loaders(run: Rehearsing, around: bool) -> list[Obj]:
    """The loaders whose loops have a backward in them, or have none."""
    training = {
        id(loader)
        for e in run.tape
        if e.name == "backward"
        for t in e.turns
        for loader in (t.over, getattr(t.over, "source", None))
    }
    found = {id(n.owner): n.owner for n in run.nodes if n.op == "batch" and isinstance(n.owner, Obj)}
    return [loader for key, loader in found.items() if (key in training) == around]


def _datasets(node: Node) -> Iterator[Value]:
    """The data sets that the loaders behind a value go through."""
    for inner in near(node, 60):
        if inner.op == "batch" and isinstance(inner.owner, Obj):
            yield inner.owner.get("dataset", 0)


SIZES = frozenset(["Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop"])
APART = 1.6
"""Images for the evaluation are often somewhat larger than those for the training (288 for 224): that helps. By more
than this, the objects in them are of another size than any that the network has seen."""


def other_size(run: Rehearsing) -> Iterator[Answer]:
    """Images that are evaluated in quite another size than those that are trained on."""
    taught = {size for d in _taught(run) if (size := _size(_steps(d))) is not None}
    if len(taught) != 1:
        return
    known = next(iter(taught))
    for dataset, place in _judged(run):
        steps = _steps(dataset)
        size = _size(steps)
        last = next((s for s in reversed(steps) if s.name in SIZES), None)
        if size is None or last is None or last.place is None or max(size, known) < APART * min(size, known):
            continue
        text = f"these images are made {size} pixels wide, and the network learns from such of {known}"
        yield Answer(last.place, text, (place,) if place is not None else ())
        return


def _steps(dataset: Value) -> list[Obj]:
    whole = base(dataset)
    if not isinstance(whole, Obj):
        return []
    if whole.kind.startswith("torchvision.datasets."):
        folder = whole.name in ("ImageFolder", "DatasetFolder")
        return steps_of(whole.options.get("transform", whole.args[1] if folder and len(whole.args) > 1 else None))
    held = [v for v in whole.attributes.values() if isinstance(v, Obj) and v.kind.startswith(HOME)]
    return steps_of(held[0]) if len(held) == 1 else []


def _size(steps: list[Obj]) -> int | None:
    """The side of the square that comes out; None where it isn't one, or not known."""
    last = next((s for s in reversed(steps) if s.name in SIZES), None)
    asked = last.get("size", 0) if last is not None else None
    if isinstance(asked, Items):
        asked = tuple(asked.items)
    if isinstance(asked, tuple) and len(asked) == 2 and asked[0] == asked[1]:
        asked = asked[0]
    elif last is not None and last.name == "Resize":
        return None  # one number is the shorter side
    return asked if isinstance(asked, int) else None


SCALED = frozenset(["ToTensor", "ConvertImageDtype", "ConvertDtype"])
HARMLESS = frozenset(
    """PILToTensor ToImage Resize CenterCrop RandomCrop RandomHorizontalFlip RandomVerticalFlip RandomResizedCrop Pad
    RandomRotation ColorJitter Grayscale ToDtype ToPureTensor ToImageTensor RandomAffine""".split()
)
"""Transforms that leave pixels of 0..255 what they are."""
BYTES = frozenset(["imread", "read_image", "decode_image", "decode_jpeg", "decode_png", "pil_to_tensor"])
"""What reads the pixels of an image as bytes."""
PASSES = frozenset(
    """cvtColor resize flip rot90 permute transpose as_tensor tensor from_numpy float astype to array asarray copy
    ascontiguousarray contiguous unsqueeze squeeze getitem element either center_crop crop hflip vflip clone stack cat
    batch moveaxis rearrange type""".split()
)
UNIT = 1.0
"""Pixels of 0..1 have means and deviations below this; those of 0..255 don't, but for images that are all black."""


def unscaled(run: Rehearsing) -> Iterator[Answer]:
    """Pixels of 0..255 that are normalised with figures for pixels of 0..1."""
    told: set[int] = set()
    for node in run.nodes:
        place = _normalised(node) or _composed(node)
        if place is not None and id(place[0]) not in told:
            told.add(id(place[0]))
            yield Answer(place, "pixels of 0..255 meet figures for 0..1 here: nothing scales them before")


def _normalised(node: Node) -> Place | None:
    """``normalize(x, mean, std)`` and ``(x - mean) / std`` of bytes."""
    if node.op == "normalize" and node.full.startswith("torchvision."):
        mean, pixels = node.get("mean", 1), node.inputs[0] if node.inputs else None
    elif node.op == "div" and len(node.inputs) == 2 and getattr(node.inputs[0], "op", "") == "sub":
        pixels, mean = node.inputs[0].inputs[:2]
        if not _below(node.inputs[1]):
            return None
    else:
        return None
    return node.place if _below(mean) and _of_bytes(pixels) else None


def _composed(node: Node) -> Place | None:
    """``Compose([ToDtype(float32), Normalize(...)])`` that is called with an image of bytes."""
    owner = node.owner
    if node.op != "call" or not isinstance(owner, Obj) or len(node.inputs) < 2:
        return None
    steps = steps_of(owner)
    last = next((n for n, s in enumerate(steps) if s.name == "Normalize"), None)
    if last is None or not _below(steps[last].get("mean", 0)) or not _of_bytes(node.inputs[1]):
        return None
    before = steps[:last]
    if any(s.name not in HARMLESS or (s.name == "ToDtype" and s.get("scale", 1, False) is not False) for s in before):
        return None
    cast = next((s for s in before if s.name == "ToDtype"), steps[last])
    return cast.place or node.place


def _below(value: Value) -> bool:
    """True for numbers of the program that all lie between 0 and 1: figures of pixels in that range."""
    for _ in range(8):
        if isinstance(value, Node) and value.op in ("tensor", "view", "reshape", "array", "to", "unsqueeze", "getitem"):
            value = value.inputs[0] if value.inputs else None
    items = value.items if isinstance(value, Items) else value if isinstance(value, tuple) else ()
    return bool(items) and all(isinstance(i, float) and 0 < i < UNIT for i in items)


def _of_bytes(value: Value) -> bool:
    """True for pixels that are certainly as they were read, whatever shape or type they were given."""
    for _ in range(40):
        if not isinstance(value, Node):
            return False
        if value.op in BYTES:
            return value.op != "imread" or value.full.startswith("cv2.")
        if value.op in ("integers", "randint"):
            ends = [i for i in value.inputs if isinstance(i, int)]
            return 256 in ends or 255 in ends
        if value.op not in PASSES or not value.inputs:
            return False
        if value.op == "either":
            return all(_of_bytes(i) for i in value.inputs)
        inner = value.inputs[0]
        held = inner.items if isinstance(inner, Items) else inner if isinstance(inner, tuple) else ()
        value = held[-1] if held else inner
    return False


__all__ = ["base", "distorting", "other_size", "shared_transform", "steps_of", "unscaled"]
