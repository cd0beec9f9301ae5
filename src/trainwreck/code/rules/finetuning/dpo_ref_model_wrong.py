"""The reference model is the policy itself.

What: ``ref_model`` is the very object that is given as ``model``.
Why it matters: both log-probabilities move together and the margin stays zero; TRL raises.
When it is fine: with a copy, a second load, or ``ref_model=None``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import imported
from trainwreck.code.calls import written
from trainwreck.code.facts import made, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM
from trl import DPOTrainer
model = AutoModelForCausalLM.from_pretrained("m")
DPOTrainer(model=model, ref_model=model, args=args, train_dataset=data).train()  # expect
""",
    """
from transformers import AutoModelForCausalLM
from trl import DPOTrainer
model = AutoModelForCausalLM.from_pretrained("m")
reference = model
DPOTrainer(model, reference, args=args, train_dataset=data).train()  # expect
""",
)
GOOD = """
import copy
from transformers import AutoModelForCausalLM
from trl import DPOTrainer
model = AutoModelForCausalLM.from_pretrained("m")
reference = copy.deepcopy(model)
DPOTrainer(model=model, ref_model=reference, args=args, train_dataset=data)
DPOTrainer(model=model, ref_model=None, args=args, train_dataset=data)
second = AutoModelForCausalLM.from_pretrained("m")
DPOTrainer(model=model, ref_model=second, args=args, train_dataset=data)
DPOTrainer(model="m", ref_model="m", args=args, train_dataset=data)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("DPOTrainer", "KTOTrainer"):
        model, reference = option(project, call, "model", 0), option(project, call, "ref_model", 1)
        if model is None or reference is None or not imported(project, call, "transformers"):
            continue
        if not isinstance(model[0], ast.Name | ast.Attribute):
            continue
        same = written(model[0]) == written(reference[0]) or _alias(project, reference[0], call, written(model[0]))
        if same and not _text(project, call):
            place = keyword_place(call, "ref_model") if call.node.lineno != call.node.end_lineno else None
            text = "the reference model is the policy itself: the margin between them stays zero"
            fix = Fix("ref_model=None, or a copy")
            yield sighting(__name__, place or call, text, fix=fix)


def _alias(project: Project, node: ast.expr, call: object, name: str) -> bool:
    """True for a name that was set to ``name`` and nothing else."""
    scope = getattr(call, "scope", None)
    bindings = project.lookup(node.id, scope) if isinstance(node, ast.Name) and scope is not None else []
    return len(bindings) == 1 and bindings[0].kind == "assign" and written(bindings[0].value) == name


def _text(project: Project, call: object) -> bool:
    """True where the model is given by its name, so that each is loaded anew."""
    node = getattr(call, "node", None)
    value = node.args[0] if node is not None and node.args else None
    scope = getattr(call, "scope", None)
    if value is None or scope is None:
        return False
    makers = made(project, value, scope)
    bindings = project.bindings(value, scope) if not makers else []
    return any(isinstance(b.value, ast.Constant) for b in bindings)
