"""The rehearsal with its library: what calls of torch, numpy and Python do, looked up in tables."""

from __future__ import annotations

from dataclasses import replace

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import (
    LEAF,
    SOME,
    UNKNOWN,
    Bound,
    External,
    Frame,
    Function,
    Items,
    Method,
    Node,
    Obj,
    Place,
    Table,
    Value,
    candidates,
    is_module,
)
from trainwreck.code.rehearsal.graph import OPAQUE
from trainwreck.code.rehearsal.holding import SCHEDULER, Holding, is_optimizer
from trainwreck.code.rehearsal.library import FUNCTIONS, METHODS, NOTHING
from trainwreck.code.rehearsal.receivers import kinds
from trainwreck.code.shapes.domain import Shape

ALPHABET = 120
"""Characters of the longest text that is gone through one by one: an alphabet, not a corpus."""
OPERATIONS = {
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "MSELoss": "mse_loss", "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss", "KLDivLoss": "kl_div", "GaussianNLLLoss":
    "gaussian_nll_loss", "PoissonNLLLoss": "poisson_nll_loss", "CTCLoss": "ctc_loss", "TripletMarginLoss":
    "triplet_margin_loss", "MarginRankingLoss": "margin_ranking_loss", "CosineEmbeddingLoss": "cosine_embedding_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss", "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss",
    "MultiMarginLoss": "multi_margin_loss", "SoftMarginLoss": "soft_margin_loss", "LogSoftmax": "log_softmax",
    "LogSigmoid": "logsigmoid", "LeakyReLU": "leaky_relu", "SiLU": "silu", "LayerNorm": "layer_norm", "BatchNorm1d":
    "batch_norm", "BatchNorm2d": "batch_norm", "BatchNorm3d": "batch_norm", "GroupNorm": "group_norm",
}  # fmt: skip
"""Names of layers and losses as functions; others are their lower-case names."""
EFFECTS = frozenset(
    ["backward", "step", "update", "save", "load", "fit", "train", "prepare", "log", "write", "add_scalar"]
)
LIKE_PYTHON = frozenset(["sample", "choice", "choices", "shuffle"])
"""Methods of a generator of Python's own that give elements of a list, as the functions of its module do."""
UNKNOWN_EFFECTS = frozenset(
    ["step", "zero_grad", "train", "eval", "load_state_dict", "state_dict", "update", "unscale_"]
)
"""Methods that are noted on the tape even where it isn't known what they are called on."""


class Rehearsing(Holding):
    """One rehearsal of one entry, with everything that is known of libraries."""

    # ------------------------------------------------------------------ functions
    def library_function(self, asked: Asked) -> Value:
        asked.full = _canonical(asked.full)
        asked.name = asked.full.rpartition(".")[2]
        handler = FUNCTIONS.get(asked.full) or FUNCTIONS.get(asked.full.rpartition(".")[0] + ".*")
        if handler is not None:
            found = handler(self, asked)
            if found is not NOTHING:
                return found
        if asked.full.startswith(("torch.nn.functional.", "torch.special.")) or not _makes_object(asked):
            return self.computed(asked)
        if SCHEDULER.search(asked.full):
            return self._scheduled(asked)
        made = self.thing(asked.full, asked.args, asked.options, asked.place)
        if is_optimizer(made):
            self.groups(made)
        elif made.kind.startswith("torch.nn."):
            self.own_parameters(made)
        return made

    def _scheduled(self, asked: Asked) -> Obj:
        made = self.thing(asked.full, asked.args, asked.options, asked.place)
        made.attributes["optimizer"] = asked.get("optimizer", 0, UNKNOWN)
        return made

    def computed(self, asked: Asked) -> Node:
        """A value that a function of a library computes."""
        given = asked.given
        if asked.options.get("requires_grad") is True and asked.full.startswith("torch."):
            return self.leaf(self.node(asked.name, given, asked.place, dict(asked.options), full=asked.full), asked)
        made = self.node(asked.name, given, asked.place, dict(asked.options), full=asked.full)
        if asked.more:
            made.options.setdefault("?", UNKNOWN)
        if asked.name in EFFECTS:
            self.event(asked.name, asked.receiver, asked.args, asked.options, asked.place, full=asked.full, result=made)
        return made

    def leaf(self, data: Node, asked: Asked) -> Node:
        """A tensor that was told to take a gradient: it is optimized like a parameter."""
        made = self.node("param", (data,), asked.place, shape=data.shape, grad=True)
        made.trainable = True
        made.attributes[LEAF] = True
        return made

    # ------------------------------------------------------------------ methods
    def library_method(self, asked: Asked) -> Value:
        receiver = asked.receiver
        for kind in kinds(receiver):
            handler = METHODS.get((kind, asked.name))
            if handler is not None:
                found = handler(self, asked)
                if found is not NOTHING:
                    return found
        if isinstance(receiver, Obj) and receiver.kind == "random.Random" and asked.name in LIKE_PYTHON:
            drawn = self.library_function(replace(asked, full=f"random.{asked.name}", receiver=None))
            if isinstance(drawn, Node):
                drawn.owner = receiver
            self.event(asked.name, receiver, asked.args, asked.options, asked.place, result=drawn)
            return drawn
        if isinstance(receiver, Obj):
            made = self.node(asked.name, asked.given, asked.place, dict(asked.options), owner=receiver)
            self.event(asked.name, receiver, asked.args, asked.options, asked.place, result=made)
            return made
        if isinstance(receiver, Node) and receiver.op in OPAQUE and asked.name in UNKNOWN_EFFECTS:
            self.event(asked.name, receiver, asked.args, asked.options, asked.place)
        if isinstance(receiver, Node):
            if asked.name == "requires_grad_" and receiver.op == "param":
                return self._param_requires_grad(receiver, asked)
            if asked.name == "requires_grad_" and not receiver.grad and asked.get("requires_grad", 0, True) is True:
                return self.leaf(receiver, asked)
            name = asked.name.rstrip("_") if asked.name.endswith("_") and asked.name != "requires_grad_" else asked.name
            made = self.node(name, asked.given, asked.place, dict(asked.options))
            if asked.name == "requires_grad_":
                made.grad = asked.get("requires_grad", 0, True) is not False
            if name != asked.name:
                made.options["inplace"] = True
                base = receiver
                while base.op in _SAME_MEMORY or "inplace" in base.options:
                    if not base.inputs or not isinstance(base.inputs[0], Node):
                        break
                    base = base.inputs[0]
                event = self.event(asked.name, receiver, asked.args, asked.options, asked.place, result=made)
                base.writes.append(event)
            return made
        return self.node(asked.name, asked.given, asked.place, dict(asked.options))

    def _param_requires_grad(self, param: Node, asked: Asked) -> Node:
        wanted = asked.get("requires_grad", 0, True)
        param.trainable = wanted if isinstance(wanted, bool) and not self.maybe else None
        param.writes.append(self.event("requires_grad", param, (wanted,), {}, asked.place))
        return param

    def after_method(self, method: Bound, place: Place) -> None:
        """The step of an optimizer that the program defines itself is noted like that of torch's."""
        if method.function.name in ("step", "zero_grad") and is_optimizer(method.receiver):
            held, complete = self.optimized(method.receiver)
            self.event(method.function.name, method.receiver, place=place, state={"held": held, "complete": complete})

    def library_object(self, obj: Obj, asked: Asked) -> Value:
        """What calling an object of a library gives: the output of a layer, the value of a loss."""
        if obj.kind == "functools.partial" and obj.args:
            return self.call(
                obj.args[0], [*obj.args[1:], *asked.args], {**obj.options, **asked.options}, asked.place, asked.frame
            )
        kind = obj.kind if obj.cls is None else next((b for b in obj.cls.external()), obj.kind)
        last = kind.rpartition(".")[2]
        if last in ("no_grad", "inference_mode", "enable_grad") and asked.args and isinstance(asked.args[0], Function):
            return replace(asked.args[0], no_grad=last != "enable_grad", with_grad=last == "enable_grad")
        if last == "Sequential":
            flowing: Value = asked.args[0] if asked.args else UNKNOWN
            state = {"training": obj.training, "grad": self.grad_mode}
            whole = self.event("forward", obj, asked.args, asked.options, asked.place, state=state)
            for part in obj.attributes.values():
                flowing = self.call(part, [flowing], {}, asked.place, asked.frame)
            whole.result = flowing
            return flowing
        if "module" in obj.attributes and last in ("DataParallel", "DistributedDataParallel", "AveragedModel"):
            state = {"training": obj.training, "grad": self.grad_mode}
            event = self.event("forward", obj, asked.args, asked.options, asked.place, state=state)
            event.result = self.call(obj.attributes["module"], asked.args, asked.options, asked.place, asked.frame)
            return event.result
        if not kind.startswith("torch.nn."):
            self.event("__call__", obj, asked.args, asked.options, asked.place)
            if obj.kind.startswith("argparse") or obj.cls is None:
                return self.node("call", asked.given, asked.place, owner=obj)
        params = list(self.own_parameters(obj).values())
        options = {**obj.options, **asked.options}
        op = OPERATIONS.get(last, last.lower())
        made = self.node(op, [*asked.args, *params], asked.place, options, full=kind, owner=obj, name=obj.kind)
        if not last.endswith("Loss"):
            state = {"training": obj.training, "grad": self.grad_mode}
            self.event("forward", obj, asked.args, asked.options, asked.place, result=made, state=state)
        if last in ("LSTM", "GRU", "RNN"):
            hidden = self.node("hidden", (made,), asked.place, owner=obj)
            return (made, (hidden, self.node("hidden", (made,), asked.place, owner=obj)) if last == "LSTM" else hidden)
        if last == "MultiheadAttention":
            return (made, self.node("weights", (made,), asked.place, owner=obj))
        return made

    # ------------------------------------------------------------------ attributes
    def library_attribute(self, base: Value, name: str, place: Place) -> Value:
        if isinstance(base, Obj):
            if (is_module(base) and base.cls is None) or (base.cls is not None and is_module(base)):
                if name == "training":
                    known = base.training
                    return known if known is not None else self.node("attribute", (base,), place, name=name)
                own = self.own_parameters(base)
                if name in own:
                    return own[name]
                if base.cls is None and name in SIZES_OF.get(base.name, ()):
                    size = base.get(name, SIZES_OF[base.name].index(name))
                    if isinstance(size, int | float):
                        return size
                inner = base.attributes.get("module")
                if isinstance(inner, Obj) and name in inner.attributes:
                    return inner.attributes[name]
            if is_optimizer(base) and name == "param_groups":
                return self.groups(base)
            if is_optimizer(base) and name == "state" and base.cls is not None:
                return base.attributes.setdefault("state", Table({}, factory=External("builtins.dict")))
            if name in ("dataset", "batch_size", "sampler") and base.get(name) is not None:
                return base.get(name)
            if (name == "dataset" and base.args) or (name == "indices" and base.name == "Subset"):
                return base.args[0] if name == "dataset" else base.get("indices", 1, UNKNOWN)
            if name == "tensors" and base.name == "TensorDataset":
                return base.args
            if name == "batch_size" and base.name.endswith("DataLoader") and isinstance(base.get(name, 1), int):
                return base.get(name, 1)
            if name in base.options and not is_module(base):
                return base.options[name]
        if isinstance(base, Node):
            if name in base.attributes:
                return base.attributes[name]
            if name in ("data", "T", "mT", "H", "real"):
                return self.node(
                    name,
                    (base,),
                    place,
                    grad=False if name == "data" else None,
                    shape=_turned(base.shape, name),
                )
            if name == "grad":
                return self.node("grad", (base,), place, grad=False, shape=base.shape)
            if name == "requires_grad":
                return base.trainable if base.op == "param" and base.trainable is not None else UNKNOWN
            if name in ("shape", "ndim") and not base.shape.open:
                return self.sizes(base, place) if name == "shape" else len(base.shape.dims)
            if name in ("values", "indices") and base.shapes:
                return self.node("part", (base, 0 if name == "values" else 1), place, name=name)
            if name in ("shape", "device", "dtype", "ndim"):
                return self.node("attribute", (base,), place, grad=False, name=name)
            if base.unknown:
                return Method(name, base)
        if isinstance(base, Obj) and base.cls is not None and not self.maybe:
            self.memo.setdefault("absent", []).append((base, name, place))
        return Method(name, base)

    def sizes(self, base: Node, place: Place) -> tuple[Value, ...]:
        """The size of each axis; those that are not known are values of their own."""
        dims = base.shape.dims
        return tuple(self.node("size", (base, at), place) if d is None else d for at, d in enumerate(dims))

    def object_item(self, base: Obj, index: Value, place: Place, frame: Frame) -> Value:
        if base.kind.startswith("torch.nn.") or "." not in base.kind:
            known = list(base.attributes.values())
            if isinstance(index, int) and known and -len(known) <= index < len(known):
                return known[index]
            if isinstance(index, str) and index in base.attributes:
                return base.attributes[index]
            if (
                isinstance(index, Obj)
                and index.kind == "builtins.slice"
                and all(e is None or isinstance(e, int) for e in index.args)
            ):
                made = self.thing(base.kind, (), {}, place)
                part = known[index.args[0] : index.args[1] : index.args[2] if index.args[2] != 0 else None]
                made.attributes.update({str(n): v for n, v in enumerate(part)})
                return made
            if known and base.name == "ModuleList" and isinstance(index, Obj) and index.kind == "builtins.slice":
                return Items(known, True, SOME, place)
            if known:
                return self._any(known, place)
        if str(index) in base.attributes:
            return base.attributes[str(index)]
        if base.name in ("TensorDataset", "Subset"):
            from trainwreck.code.rehearsal.library.data import example, numbers_of

            return example(self, base, place, frame, numbers_of(index))
        if is_optimizer(base):
            return UNKNOWN
        return self.node("item", (base, index), place)

    # ------------------------------------------------------------------ iteration
    def elements(self, value: Value, place: Place, frame: Frame) -> tuple[list[Value], bool]:
        """The elements that iterating over ``value`` gives, and whether there may be more of them. Where the number
        is not known, two are made: the first, and any other."""
        match value:
            case tuple():
                return list(value), False
            case Items():
                return self._listed(value, place)
            case Table():
                keys = [k if not str(k).startswith("?") else self.node("key", (), place) for k in value.entries]
                return list(keys), value.more
            case str():
                return (list(value), False) if len(value) <= ALPHABET else ([UNKNOWN], True)
            case Node() if value.op == "either":
                known = [c for c in candidates(value) if not (isinstance(c, Node) and c.unknown) and c is not None]
                held = [i for c in known if isinstance(c, Items) for i in c.items if isinstance(i, Table)]
                return (held, False) if held else self.elements(known[0], place, frame) if known else ([UNKNOWN], True)
            case Obj():
                return self._of_object(value, place, frame)
            case Node():
                return [self.node("element", (value,), place), self.node("element", (value,), place)], True
        return [UNKNOWN, UNKNOWN], True

    def _listed(self, value: Items, place: Place) -> tuple[list[Value], bool]:
        items = list(value.items)
        if value.more and len(items) == 1 and value.kind != "parameters":
            items = items * 2
        return items, value.more

    def _of_object(self, value: Obj, place: Place, frame: Frame) -> tuple[list[Value], bool]:
        from trainwreck.code.rehearsal.library.data import LOADERS, batch, example

        if value.name in LOADERS:
            self.event("iterate", value, (), {}, place)
            return [batch(self, value, place), batch(self, value, place)], True
        if value.kind in ("namedtuple", "typing.NamedTuple"):
            return list(value.attributes.values()), False
        if value.cls is not None:
            walker = value.cls.find("__iter__")
            if isinstance(walker, Function):
                return self.elements(self.call(Bound(walker, value), [], {}, place, frame), place, frame)
            if isinstance(value.cls.find("__getitem__"), Function):
                return [example(self, value, place, frame), example(self, value, place, frame)], True
        if is_module(value) and value.attributes and (value.cls is None or "ModuleDict" not in value.kind):
            if value.name == "ModuleDict":
                return list(value.attributes), False
            return list(value.attributes.values()), False
        if value.name in ("TensorDataset", "Subset"):
            return [example(self, value, place, frame), example(self, value, place, frame)], True
        return [
            self.node("element", (value,), place, owner=value),
            self.node("element", (value,), place, owner=value),
        ], True


def _turned(shape: Shape, name: str) -> Shape:
    """The shape of ``x.T`` and its like; of ``x.data`` it is the same."""
    if name in ("data", "real"):
        return shape
    turns = len(shape.dims) == 2 and not shape.open if name != "mT" else len(shape.dims) >= 2
    return Shape((*shape.dims[:-2], shape.dims[-1], shape.dims[-2]), shape.open, shape.by) if turns else UNKNOWN.shape


_SAME_MEMORY = frozenset(["getitem", "attribute", "data", "detach", "state"])
"""What gives a view: a change of it in place changes what it was taken from."""


def _canonical(full: str) -> str:
    for long, short in (
        ("torch.nn.modules.", "torch.nn."), ("np.", "numpy."), ("torch.functional.", "torch."),
        ("torch.utils.data.dataset.", "torch.utils.data."), ("torch.utils.data.dataloader.", "torch.utils.data."),
    ):  # fmt: skip
        if full.startswith(long):
            full = short + full[len(long) :]
    if full.startswith("torch.nn.") and full.count(".") == 3 and full.split(".")[2] in _SUBMODULES:
        full = "torch.nn." + full.rpartition(".")[2]
    return full


_SUBMODULES = frozenset(["linear", "loss", "activation", "conv", "normalization", "batchnorm", "container", "module",
                         "rnn", "sparse", "transformer", "dropout", "pooling"])  # fmt: skip


SIZES_OF = {
    "Linear": ("in_features", "out_features"),
    "Embedding": ("num_embeddings", "embedding_dim"),
    "Dropout": ("p",),
    **dict.fromkeys(["Conv1d", "Conv2d", "Conv3d"], ("in_channels", "out_channels")),
    **dict.fromkeys(["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"], ("num_features",)),
    **dict.fromkeys(["LSTM", "GRU", "RNN"], ("input_size", "hidden_size")),
}
"""Attributes of layers that hold the arguments that they were made with, in their order."""


def _makes_object(asked: Asked) -> bool:
    """True for a class by its name; also for functions that return a schedule."""
    name = asked.name.lstrip("_")
    if SCHEDULER.search(asked.full):
        return True
    return name[:1].isupper() and name not in ("FloatTensor", "LongTensor", "Tensor", "BoolTensor", "IntTensor")
