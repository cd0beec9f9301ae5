"""The wrapped model is saved.

What: ``model.save_pretrained`` or ``torch.save(model.state_dict())`` of a model that ``prepare`` wrapped, without
``unwrap_model``.
Why it matters: on several GPUs the wrapper has no ``save_pretrained``, and its keys begin with "module.".
When it is fine: on one process, and with ``accelerator.save_model`` or ``get_state_dict``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.rules.accelerate.accelerate_plain_backward import prepares
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator()
    model, opt, loader = accelerator.prepare(model, opt, loader)
    train(model, opt, loader, accelerator)
    model.save_pretrained("out")  # expect
""",
    """
import torch
from accelerate import Accelerator
def main(net, opt):
    acc = Accelerator()
    net, opt = acc.prepare(net, opt)
    torch.save(net.state_dict(), "net.pt")  # expect
""",
)
GOOD = (
    """
from accelerate import Accelerator
def main(model, opt, loader):
    accelerator = Accelerator()
    model, opt, loader = accelerator.prepare(model, opt, loader)
    accelerator.unwrap_model(model).save_pretrained("out")
    tokenizer.save_pretrained("out")
""",
    """
from accelerate import Accelerator
def main(model, opt):
    accelerator = Accelerator()
    model, opt = accelerator.prepare(model, opt)
    accelerator.save_state("out")
""",
)


def find(project: Project) -> Iterator[Evidence]:
    words = ("unwrap_model", "extract_model_from_parallel", ".module", "get_state_dict")
    if any(w in walked.top.module.text for walked in project.walked.values() for w in words):
        return
    for prepare in prepares(project):
        statement = project.statement(prepare.node, prepare.scope)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        targets = target.elts if isinstance(target, ast.Tuple) else [target] if target is not None else []
        for place, name in zip(targets, prepare.node.args, strict=False):
            if "model" not in written(name).lower() and "net" not in written(name).lower():
                continue
            for use in project.calls("save_pretrained", "state_dict", "push_to_hub"):
                same = (
                    use.scope is prepare.scope and written(use.receiver) == written(place) and use.line > prepare.line
                )
                if same and (use.name != "state_dict" or _saved(project, use)):
                    text = "this is the wrapper that prepare gave: on several GPUs it can't save, or its keys differ"
                    fix = Fix(f"accelerator.unwrap_model({written(place)})")
                    yield sighting(__name__, use, text, proof=[prepare], fix=fix)


def _saved(project: Project, use: Call) -> bool:
    above = project.parent(use.node, use.scope)
    return isinstance(above, ast.Call) and written(above.func).endswith("save")
