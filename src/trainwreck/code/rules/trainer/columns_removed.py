"""The Trainer removed columns that the collator or the model's own code needs.

What: ``remove_unused_columns`` is on by default; only columns that ``forward`` names survive.
Why it matters: the collator misses its keys, or nothing is left at all.
When it is fine: where the names of the columns are those of ``forward``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.calls import Call, written
from trainwreck.code.facts import complete, only, option
from trainwreck.code.flow import back
from trainwreck.code.huggingface import arguments_call, loaded_by, model_loads, trainer_calls, trainer_option
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place, trainers, training_arguments
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_false
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

SURFACES = (
    r"No columns in the dataset match the model's forward",
    r"KeyError",
    r"missing \d+ required positional argument",
    r"IndexError: Invalid key|index \d+ is out of bounds for size 0",
    r"should provide an encoding|must provide|You have to specify",
)
ERROR = "KeyError: 'pixels'"
BAD = (
    """
from transformers import Trainer, TrainingArguments
def collate(rows):
    return {"x": [r["pixels"] for r in rows]}  # fails
def main(model, data):
    args = TrainingArguments(output_dir="out")  # expect
    Trainer(model=model, args=args, train_dataset=data, data_collator=collate).train()
""",
    """
from transformers import AutoModelForImageClassification, Trainer, TrainingArguments
def collate(rows):
    images = []
    for row in rows:
        images.append(row["image"])
    return processor(images)
def main(data):
    model = AutoModelForImageClassification.from_pretrained("google/vit-base-patch16-224")
    args = TrainingArguments(output_dir="out")  # expect
    Trainer(model=model, args=args, train_dataset=data, data_collator=collate).train()
""",
    """
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments
class Batch:
    def __call__(self, features):
        return tok([f["text"] for f in features], padding=True)
def main(data):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
    args = TrainingArguments(output_dir="out", remove_unused_columns=True)  # expect
    Trainer(model=model, args=args, train_dataset=data, data_collator=Batch()).train()
""",
    """
from torch import nn
from transformers import Trainer, TrainingArguments
class Wrapped(nn.Module):
    def forward(self, batch=None, **inputs):  # expect
        return self.core(**inputs)
def main(data, tok):
    data = data.map(lambda r: tok(r["text"], truncation=True))
    Trainer(model=Wrapped(), args=TrainingArguments(output_dir="o"), train_dataset=data).train()
""",
)
GOOD = (
    """
from transformers import Trainer, TrainingArguments
def collate(rows):
    return {"x": [r["pixels"] for r in rows]}  # fails
def main(model, data):
    args = TrainingArguments(output_dir="out", remove_unused_columns=False)
    Trainer(model=model, args=args, train_dataset=data, data_collator=collate).train()
""",
    """
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments
def plain(rows):
    return tok.pad([{"input_ids": r["input_ids"], "label": r["label"]} for r in rows])
def asked(rows):
    return [r["text"] for r in rows if "text" in r]
def main(data, own):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
    args = TrainingArguments(output_dir="out")
    Trainer(model=model, args=args, train_dataset=data, data_collator=plain)
    Trainer(model=model, args=args, train_dataset=data, data_collator=asked)
    Trainer(model=own, args=args, train_dataset=data, data_collator=lambda rows: [r["text"] for r in rows])
""",
    """
from torch import nn
from transformers import Trainer, TrainingArguments
class Named(nn.Module):
    def forward(self, input_ids, labels=None, **rest):
        return self.core(input_ids, labels=labels)
class Plain(nn.Module):
    def forward(self, x, y):
        return self.core(x, y)
def main(data, tok):
    data = data.map(lambda r: tok(r["text"], truncation=True))
    Trainer(model=Named(), args=TrainingArguments(output_dir="o"), train_dataset=data).train()
    Trainer(model=Plain(), args=TrainingArguments(output_dir="o"), train_dataset=data).train()
""",
)
FORWARD = frozenset(
    re.findall(
        r"\w+",
        """input_ids attention_mask token_type_ids position_ids head_mask inputs_embeds labels label label_ids
    pixel_values
    pixel_values_videos pixel_mask image_grid_thw video_grid_thw image_sizes input_features input_values bbox
    decoder_input_ids decoder_attention_mask decoder_inputs_embeds start_positions end_positions next_sentence_label
    sentence_order_label mc_labels mc_token_ids bool_masked_pos mask_labels class_labels return_loss entity_ids langs
    padding_mask global_attention_mask past_values future_values images audio_values""",
    )
)
"""Names that a forward of transformers takes; a column called otherwise is dropped."""


def _forwards(project: Project) -> Iterator[tuple[Scope, ast.FunctionDef]]:
    for walked in project.walked.values():
        for node in ast.walk(walked.top.module.tree):
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                yield walked.top, node


def find(project: Project) -> Iterator[Evidence]:
    """Collators that read columns which no forward of transformers takes."""
    if "remove_unused_columns" in attributes_set(project):
        return
    for trainer in trainer_calls(project):
        args, model = arguments_call(project, trainer), trainer_option(project, trainer, "model")
        given = trainer_option(project, trainer, "data_collator")
        yield from _hidden(project, trainer)
        if args is None or model is None or given is None or not complete(project, args):
            continue
        removed = only(project, option(project, args, "remove_unused_columns")) in (None, True)
        if not removed or args.name not in ("TrainingArguments", "Seq2SeqTrainingArguments"):
            continue
        if loaded_by(project, *model, model_loads(project)) is None:
            continue
        for name, node, scope in _read(project, *given):
            if name not in FORWARD:
                text = f"the collator reads the column {name!r}, which remove_unused_columns drops before it"
                yield sighting(__name__, args, text, proof=[(scope.module.path, node.lineno, f"[{name!r}]")])
                break


def _hidden(project: Project, trainer: Call) -> Iterator[Evidence]:
    """A wrapper whose forward takes everything by ``**inputs`` and names no column of a data set."""
    args, model = arguments_call(project, trainer), trainer_option(project, trainer, "model")
    data = trainer_option(project, trainer, "train_dataset")
    owner = project.class_of(*model) if model is not None else None
    if args is None or data is None or owner is None or not complete(project, args):
        return
    removed = only(project, option(project, args, "remove_unused_columns")) in (None, True)
    forward = project.find_method(owner, "forward")
    if (
        not removed
        or forward is None
        or not isinstance(forward.node, ast.FunctionDef)
        or forward.node.args.kwarg is None
    ):
        return
    tokenised = any(isinstance(s.node, ast.Call) and "truncation" in written(s.node) for s in back(project, *data))
    if tokenised and not set(forward.params[1:]) & FORWARD:
        text = f"the forward of {owner.name} names no column, so the Trainer drops all of them"
        fix = Fix("remove_unused_columns=False, or name input_ids, attention_mask, labels in forward")
        yield sighting(__name__, (forward.node, forward), text, proof=[trainer], fix=fix)


def _read(project: Project, node: ast.expr, scope: Scope) -> Iterator[tuple[str, ast.Subscript, Scope]]:
    """(column, where) that a collator reads of each of its rows; none where it first looks whether they are there."""
    function = project.resolve(node, scope)
    if function is None and isinstance(node, ast.Name | ast.Call):
        owner = project.class_of(node, scope)
        function = project.find_method(owner, "__call__") if owner is not None else None
    if function is None or function.kind != "function":
        return
    params = [p for p in function.params if p != "self"]
    rows = set()
    for inner in ast.walk(function.node):
        match inner:
            case ast.For(target=ast.Name(id=row), iter=ast.Name(id=given)):
                rows.update([row] if given in params[:1] else [])
            case ast.comprehension(target=ast.Name(id=row), iter=ast.Name(id=given)):
                rows.update([row] if given in params[:1] else [])
        if isinstance(inner, ast.Compare) and any(isinstance(o, ast.In | ast.NotIn) for o in inner.ops):
            return
    for inner in ast.walk(function.node):
        match inner:
            case ast.Subscript(value=ast.Name(id=row), slice=ast.Constant(value=str() as key), ctx=ast.Load()):
                if row in rows:
                    yield key, inner, function


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    if not trainers(project) or "metric_for_best_model" in surface.message:
        return
    told = re.search(r"forward method signature: \(([^)]*)\)", surface.message)
    if told is not None:
        taken = {name.strip() for name in told[1].split(",")} - {"label", "label_ids", "labels"}
        for scope, node in _forwards(project):
            names = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)} - {"self"}
            names |= {node.args.kwarg.arg} if node.args.kwarg else set()
            if names and names == taken:
                yield guess(__name__, (node, scope), "this forward names none of the columns, so all are dropped")
                return
    for call in training_arguments(project):
        if call.argument("remove_unused_columns") is None and not call.open_ended:
            yield guess(__name__, call, "remove_unused_columns is not given, so it is on")
            return
        place = keyword_place(call, "remove_unused_columns")
        if place is not None and not is_false(call.argument("remove_unused_columns")):
            yield guess(__name__, place, "columns are removed because of this")
            return
