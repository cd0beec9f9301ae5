"""Questions about programs of the Hugging Face family: which checkpoint, which trainer with which arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from trainwreck.catalogue import hub
from trainwreck.catalogue.arguments import groups
from trainwreck.catalogue.hub import Checkpoint
from trainwreck.code.arguments import imported
from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import made, only, option
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.targets import aim
from trainwreck.code.values import literal

TRAINERS = pattern(r"(Seq2Seq|SFT|DPO|GRPO|KTO|RLOO|ORPO|CPO|Reward|PRM|BCO|GKD|OnlineDPO|SentenceTransformer)?Trainer")
MODELS = pattern(
    r"(AutoModel\w*|AutoPeftModel\w*|[A-Z]\w*(For[A-Z]\w+|LMHeadModel|Model))\.(from_pretrained|from_config)"
)
BUILT = pattern(r"(?!Auto|DataCollator)[A-Z]\w*(For[A-Z]\w+|LMHeadModel)")
TOKENIZERS = pattern(r"(\w*Tokenizer(Fast)?|\w*Processor)\.from_pretrained")


def loads(project: Project, pattern: re.Pattern[str]) -> Iterator[Call]:
    """``from_pretrained`` calls of classes of transformers, peft or diffusers whose written end fits ``pattern``."""
    for call in project.calls("from_pretrained", "from_config"):
        name = ".".join(project.called(call).split(".")[-2:])
        if pattern.fullmatch(name) and imported(project, call, "transformers" if "Peft" not in name else "peft"):
            yield call


def model_loads(project: Project) -> list[Call]:
    """Calls that load a model, or build one from a configuration."""
    if "model loads" not in project.memo:
        built = [
            call
            for name, calls in project.calls_by_name.items()
            if BUILT.fullmatch(name)
            for call in calls
            if project.called(call).split(".", 1)[0] == "transformers"
        ]
        project.memo["model loads"] = [*loads(project, MODELS), *built]
    found: list[Call] = project.memo["model loads"]
    return found


def tokenizer_loads(project: Project) -> list[Call]:
    """Calls that load a tokenizer or processor."""
    if "tokenizer loads" not in project.memo:
        project.memo["tokenizer loads"] = list(loads(project, TOKENIZERS))
    found: list[Call] = project.memo["tokenizer loads"]
    return found


def holder(call: Call) -> str:
    """The class whose ``from_pretrained`` is called, or that is built."""
    if call.name not in ("from_pretrained", "from_config"):
        return call.name
    return last_name(call.receiver) if call.receiver is not None else ""


def family_of(project: Project, call: Call) -> str:
    """The family of a model by its checkpoint, else by its class (``LlamaForCausalLM``), "" where neither is known."""
    known = checkpoint_of(project, call)
    if known is not None:
        return known.family
    prefix = _prefix(holder(call))
    rows = hub.checkpoints().values()
    return next((c.family for c in rows if prefix and _prefix(c.architecture) == prefix), "")


def _prefix(name: str) -> str:
    return re.split(r"For[A-Z]|LMHead|Model$", name)[0]


def linear_layers(family: str) -> frozenset[str]:
    """Names of the linear layers of a family, empty where they are not known."""
    rows = hub.checkpoints().values()
    return next((c.linear_layers for c in rows if c.family == family and c.linear_layers), frozenset())


def name_of(project: Project, call: Call) -> str | None:
    """The one id or path that a load names, None where it can't be told."""
    place = option(project, call, "pretrained_model_name_or_path", 0) or option(project, call, "model", 0)
    value = only(project, place)
    return value if isinstance(value, str) else None


def checkpoint_of(project: Project, call: Call) -> Checkpoint | None:
    """The row of the checkpoint that a load names, None if it is not known."""
    name = name_of(project, call)
    return hub.checkpoint(name) if name else None


def loaded_by(project: Project, node: ast.expr | None, scope: Scope, among: Sequence[Call]) -> Call | None:
    """The one of the calls ``among`` that made what ``node`` stands for, None where it is none or several."""
    if node is None:
        return None
    nodes = {c.node: c for c in among}
    found: dict[ast.Call, Call] = {}
    todo, seen = [(node, scope)], set[int]()
    while todo:
        for call in made(project, *todo.pop()):
            if id(call.node) in seen:
                continue
            seen.add(id(call.node))
            if call.node in nodes:
                found[call.node] = nodes[call.node]
            elif call.name in SAME_OBJECT and call.receiver is not None:
                todo.append((call.receiver, call.scope))
    return next(iter(found.values())) if len(found) == 1 else None


SAME_OBJECT = frozenset(["to", "cuda", "cpu", "half", "float", "double", "bfloat16", "train", "eval", "requires_grad_"])
"""Methods of a model that give the model back."""


def trainer_calls(project: Project) -> list[Call]:
    """Calls that make a trainer of transformers or TRL, or of a class of the program derived from one as it is."""
    if "trainer calls" not in project.memo:
        found = [
            call
            for name, calls in project.calls_by_name.items()
            if TRAINERS.fullmatch(name)
            for call in calls
            if project.resolve(call.node.func, call.scope) is None and imported(project, call, "transformers")
        ]
        for own in project.classes:
            bases = {b for b in project.base_names(own) if b.split(".")[0] in ("transformers", "trl")}
            derived = any(TRAINERS.fullmatch(b.rsplit(".", 1)[-1]) for b in bases)
            if derived and project.find_method(own, "__init__") is None:
                found += [c for c in project.calls(own.name) if project.resolve(c.node.func, c.scope) is own]
        project.memo["trainer calls"] = found
    calls_: list[Call] = project.memo["trainer calls"]
    return calls_


def trainer_option(project: Project, call: Call, name: str) -> tuple[ast.expr, Scope] | None:
    """An argument of a trainer by name, or where it stands in the order of ``Trainer``."""
    places = {"model": 0, "args": 1, "data_collator": 2, "train_dataset": 3, "eval_dataset": 4}
    own = project.resolve(call.node.func, call.scope)
    names = {project.called(call)} if own is None else project.base_names(own)
    plain = any(n.rsplit(".", 1)[-1] in ("Trainer", "Seq2SeqTrainer") for n in names)
    tuned = not plain and name != "model"
    return option(project, call, name, None if tuned else places.get(name))


def arguments_call(project: Project, trainer: Call) -> Call | None:
    """The one call that made the arguments of a trainer, None where it can't be told."""
    place = trainer_option(project, trainer, "args")
    if place is None:
        return None
    names = groups()["trainer"].names
    found = {c.node: c for c in made(project, *place) if c.name in names and imported(project, c, "transformers")}
    return next(iter(found.values())) if len(found) == 1 else None


def attribute_set(project: Project, attribute: str) -> bool:
    """True if anything in the program sets an attribute of this name (``tokenizer.pad_token = ...``)."""
    key = f"set {attribute}"
    if key not in project.memo:
        ending = "." + attribute
        project.memo[key] = any(
            attribute in s.attributes or any(n.endswith(ending) for n in s.bindings) for s in project.scopes
        ) or any(
            isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Store)
            for walked in project.walked.values()
            if attribute in walked.top.module.text
            for node in walked.parents
        )
    return bool(project.memo[key])


def words(project: Project, node: ast.expr, scope: Scope) -> list[str] | None:
    """The strings of a literal list, tuple or set, None where one of them can't be told."""
    found = literal(project, node, scope)
    if found is None or isinstance(found[0], ast.Dict):
        return None
    items = getattr(found[0], "elts", [])
    values = [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
    return values if len(values) == len(items) else None


def wrapped_for_peft(project: Project) -> bool:
    """True if anything in the program makes or hands over an adapter."""
    if "peft used" not in project.memo:
        makes = any(
            c
            for name in ("get_peft_model", "PeftModel", "add_adapter", "inject_adapter_in_model")
            for c in project.calls(name)
        )
        gives = any(
            k.arg == "peft_config" and not (isinstance(k.value, ast.Constant) and k.value.value is None)
            for calls in project.calls_by_name.values()
            for c in calls
            for k in c.node.keywords
        )
        loads_ = any("Peft" in project.called(c) for c in project.calls("from_pretrained"))
        project.memo["peft used"] = makes or gives or loads_
    return bool(project.memo["peft used"])


def text_has(project: Project, *words_: str) -> bool:
    """True if any of these words stands in a module of the program."""
    return any(word in walked.top.module.text for walked in project.walked.values() for word in words_)


def release(project: Project, package: str, path: str, minimum: tuple[int, ...]) -> Literal["yes", "no", "open"]:
    """Whether the release of ``package`` that is meant is ``minimum`` or later; "open" where nothing pins it."""
    where = aim(project, package, path)
    if where is None:
        return "no"
    newest = where.newest[0]
    if newest < 0 or where.table.versions[newest] < minimum:
        return "no"
    if where.pin is None:
        return "open"
    oldest = max(where.allowed[0][0], 0) if where.allowed else newest
    return "yes" if where.table.versions[oldest] >= minimum else "open"


SHAPING = frozenset(
    [
        "map", "filter", "shuffle", "select", "select_columns", "remove_columns", "rename_column", "rename_columns",
        "with_format", "cast", "cast_column", "take", "skip", "sort", "flatten", "with_transform", "shard", "repeat",
    ]
)  # fmt: skip
"""Methods of a data set of the datasets library that give another one back."""
DATASET_MAKERS = frozenset(
    ["load_dataset", "from_dict", "from_list", "from_pandas", "from_generator", "from_csv", "from_json", "from_parquet",
     "load_from_disk"]
)  # fmt: skip


def dataset_root(project: Project, node: ast.expr | None, scope: Scope, depth: int = 0) -> Call | None:
    """The call of the datasets library that made the data set ``node``, through methods, splits and names."""
    if node is None or depth > 12:
        return None
    match node:
        case ast.Subscript():
            return dataset_root(project, node.value, scope, depth + 1)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in SHAPING:
            return dataset_root(project, inner, scope, depth + 1)
        case ast.Call():
            call = Call(node, scope)
            if call.name in DATASET_MAKERS and project.called(call).split(".", 1)[0] == "datasets":
                return call
            target = project.resolve(node.func, scope)
            if target is None or target.kind != "function":
                return None
            return _agreed([dataset_root(project, v, target, depth + 1) for v in target.returns if v is not None])
        case ast.Name():
            found = []
            for binding in project.lookup(node.id, scope):
                if binding.kind == "param":
                    found += [dataset_root(project, v, s, depth + 1) for v, s in project.arguments(binding)]
                elif binding.kind == "assign" and binding.value is not None and binding.value is not node:
                    if any(isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(binding.value)):
                        continue  # ds = ds.map(...)
                    found.append(dataset_root(project, binding.value, binding.scope, depth + 1))
                elif binding.kind not in ("append", "augment", "assign"):
                    return None
            return _agreed(found)
    return None


def _agreed(found: Sequence[Call | None]) -> Call | None:
    kept = {c.node: c for c in found if c is not None}
    return next(iter(kept.values())) if len(kept) == 1 and None not in found else None


def streamed(project: Project, root: Call | None) -> bool:
    """True for a data set that is loaded with ``streaming=True``."""
    return (
        root is not None and root.name == "load_dataset" and only(project, option(project, root, "streaming")) is True
    )


def quantised(project: Project, load: Call) -> bool:
    """True for a model that is loaded in 4 or 8 bits by bitsandbytes."""
    given = option(project, load, "quantization_config")
    if given is None:
        return any(only(project, option(project, load, w)) is True for w in ("load_in_4bit", "load_in_8bit"))
    makers = [c for c in made(project, *given) if c.name == "BitsAndBytesConfig"]
    return any(only(project, option(project, c, w)) is True for c in makers for w in ("load_in_4bit", "load_in_8bit"))


def before(one: Call, other: Call) -> bool:
    """True if both stand in one function and ``one`` above ``other``."""
    return one.scope is other.scope and (one.line, one.node.col_offset) < (other.line, other.node.col_offset)


def trains(project: Project) -> bool:
    """True if the program runs a backward pass or ``train()`` of a trainer."""
    ends = ("backward", "train", "manual_backward", "training_step")
    return any(c for name in ends for c in project.calls(name) if name != "train" or not c.node.args)
