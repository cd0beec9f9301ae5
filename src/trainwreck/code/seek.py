"""Questions that many rules ask: the labels of a loss, the inputs of a model, the loaders and data sets behind it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import Step, back
from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface

FUNCTIONAL_LOSSES = frozenset(
    [
        "cross_entropy",
        "nll_loss",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "kl_div",
        "poisson_nll_loss",
        "multi_margin_loss",
        "ctc_loss",
        "soft_margin_loss",
    ]
)
LOADERS = ("DataLoader", "StatefulDataLoader")
ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig", "RewardConfig")
TRAINERS = ("Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer", "GRPOTrainer", "RewardTrainer")
CONVERSIONS = frozenset(
    [
        "tensor",
        "as_tensor",
        "from_numpy",
        "FloatTensor",
        "LongTensor",
        "Tensor",
        "DoubleTensor",
        "IntTensor",
        "asarray",
        "array",
    ]
)

Value = tuple[ast.expr, Scope]


def is_loss(project: Project, call: Call) -> bool:
    """True for a call of a loss function: functional, or an object made by ``SomethingLoss(...)``."""
    name = call.name
    if name in FUNCTIONAL_LOSSES:
        return True
    if name.endswith("Loss"):
        return False
    if any(made.name.endswith("Loss") for made in constructors(project, call.node.func, call.scope)):
        return True
    return name in ("criterion", "loss_fn", "loss_func", "criteria") and len(call.node.args) >= 2


def loss_kind(project: Project, call: Call) -> set[str]:
    """Names of the loss that ``call`` may compute, lower case without ``_`` and ``loss``: ``crossentropy``, ``mse``."""
    names = {call.name}
    if call.name not in FUNCTIONAL_LOSSES:
        names |= {made.name for made in constructors(project, call.node.func, call.scope) if made.name.endswith("Loss")}
    return {n.lower().replace("_", "").removesuffix("loss") for n in names}


def losses(project: Project) -> Iterator[Call]:
    """Every call of a loss in the program."""
    if "losses" not in project.memo:
        project.memo["losses"] = list(_losses(project))
    yield from project.memo["losses"]


def _losses(project: Project) -> Iterator[Call]:
    for walked in project.walked.values():
        for node, scope in walked.calls:
            call = Call(node, scope)
            if not isinstance(node.func, ast.Name | ast.Attribute) or not node.args:
                continue
            if call.name in FUNCTIONAL_LOSSES or (_may_be_loss(project, call) and is_loss(project, call)):
                yield call


def _may_be_loss(project: Project, call: Call) -> bool:
    """False where a call is surely none: one argument only, or something of a package that is no loss."""
    if len(call.node.args) + len(call.node.keywords) < 2:
        return False
    func = call.node.func
    if isinstance(func, ast.Attribute) and written(func.value) != "self" and not re.search("loss|crit|obj", func.attr):
        return False
    return project.dotted(func, call.scope).split(".", 1)[0] not in ("torch", "numpy", "math", "os", "re")


def targets(project: Project, surface: Surface) -> list[Value]:
    """The labels that reach the failing line, most likely first: target of a loss, ``labels=``, the trainer's data."""
    found: list[Value] = []
    for call in surface.calls(project):
        if is_loss(project, call):
            value = call.argument("target", 1) or call.argument("labels")
        else:
            value = call.argument("labels") or call.argument("target") or call.argument("targets")
        if value is not None:
            found.append((value, call.scope))
    if not found:
        found = [(v, c.scope) for c in trainers(project, surface) if (v := c.argument("train_dataset")) is not None]
    return found


def inputs(project: Project, surface: Surface) -> list[Value]:
    """Everything that is handed to calls on the failing lines, innermost frame first, arguments in order."""
    found: list[Value] = []
    for call in surface.calls(project):
        for value in (*call.node.args, *(k.value for k in call.node.keywords)):
            found.append((value.value if isinstance(value, ast.Starred) else value, call.scope))
        if call.receiver is not None and project.bindings_of_values(call.receiver, call.scope):
            found.append((call.receiver, call.scope))
    for spot in surface.spots[:2]:
        for node in ast.walk(spot.statement):
            if isinstance(node, ast.BinOp):
                found += [(node.left, spot.scope), (node.right, spot.scope)]
    return found


def trainers(project: Project, surface: Surface | None = None) -> list[Call]:
    """Calls that make a Trainer; those behind the failing line first."""
    found: list[Call] = []
    for call in surface.calls(project) if surface is not None else ():
        if call.receiver is not None and call.name in ("train", "evaluate", "predict"):
            found += [c for c in constructors(project, call.receiver, call.scope) if c.name.endswith("Trainer")]
    found += [c for c in project.calls(*TRAINERS) if all(c.node is not f.node for f in found)]
    return found


def training_arguments(project: Project) -> list[Call]:
    return list(project.calls(*ARGUMENTS))


def loaders(project: Project, surface: Surface | None = None) -> list[Call]:
    """DataLoader calls, most likely first: those that feed the loop around the failing line, then training loaders."""
    found: list[Call] = []
    if surface is not None:
        for spot in surface.spots:
            around = [spot.statement, *project.ancestors(spot.statement, spot.scope)]
            for node in around:
                if isinstance(node, ast.For | ast.AsyncFor):
                    for step in back(project, node.iter, spot.scope):
                        if isinstance(step.node, ast.Call) and last_name(step.node.func) in LOADERS:
                            found.append(Call(step.node, step.scope))
            for call in (Call(n, spot.scope) for n in ast.walk(spot.statement) if isinstance(n, ast.Call)):
                if call.name in ("next", "iter") and call.node.args:
                    found += _made_by_loader(project, call.node.args[0], call.scope)
    named = [c.node for c in found]
    found = sorted(found, key=lambda c: not is_training_loader(project, c))
    rest = [c for c in project.calls(*LOADERS) if c.node not in named]
    return [*found, *sorted(rest, key=lambda c: not is_training_loader(project, c))]


def _made_by_loader(project: Project, node: ast.expr, scope: Scope) -> list[Call]:
    steps = back(project, node, scope)
    return [Call(s.node, s.scope) for s in steps if isinstance(s.node, ast.Call) and last_name(s.node.func) in LOADERS]


def is_training_loader(project: Project, call: Call) -> bool:
    """True where the loader shuffles or is called a training loader."""
    shuffle = call.argument("shuffle", 2)
    if isinstance(shuffle, ast.Constant):
        return bool(shuffle.value)
    statement = project.statement(call.node, call.scope)
    target = written(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    return "train" in target.lower() or "train" in written(call.argument("dataset", 0)).lower()


def dataset_classes(project: Project) -> list[Scope]:
    """Classes with ``__getitem__`` or ``__iter__`` that look like data sets."""
    return [
        c
        for c in project.classes
        if c.method("__getitem__") or (c.method("__iter__") and project.is_a(c, "IterableDataset"))
    ]


def modules(project: Project) -> list[Scope]:
    """Classes of the project that are ``nn.Module``."""
    if "modules" not in project.memo:
        kinds = ("Module", "LightningModule", "PreTrainedModel")
        project.memo["modules"] = [c for c in project.classes if project.is_a(c, *kinds)]
    found: list[Scope] = project.memo["modules"]
    return found


def is_module(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True if calling ``node`` runs a network: an object of a Module class or of ``torch.nn``."""
    owner = project.class_of(node, scope)
    if owner is not None:
        return project.is_a(owner, "Module", "LightningModule", "PreTrainedModel")
    for made in constructors(project, node, scope):
        name = project.called(made)
        if name.startswith("torch.nn.") and not name.endswith("Loss") and name[len("torch.nn.")].isupper():
            return True
        if made.name == "from_pretrained" or ("For" in made.name and made.name[0].isupper()):
            return True
    return False


def first(project: Project, asked: list[Value], wanted: Callable[[Step], bool]) -> Step | None:
    """The first step, over the values in their order, that ``wanted`` accepts."""
    for node, scope in asked:
        for step in back(project, node, scope):
            if wanted(step):
                return step
    return None


def keyword(call: Call, name: str) -> Value | None:
    """A keyword argument with its scope, for pointing at its own line."""
    value = next((k.value for k in call.node.keywords if k.arg == name), None)
    return (value, call.scope) if value is not None else None


def keyword_place(call: Call, name: str) -> tuple[ast.AST, Scope] | None:
    """The keyword itself (its line is where its name stands)."""
    found = next((k for k in call.node.keywords if k.arg == name), None)
    return (found, call.scope) if found is not None else None


def assigned_name(project: Project, call: Call) -> str:
    """The name that the statement of ``call`` assigns to, empty where it is none."""
    statement = project.statement(call.node, call.scope)
    return written(statement.targets[0]) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else ""
