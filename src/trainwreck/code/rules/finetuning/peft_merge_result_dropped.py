"""The merged model is thrown away.

What: ``model.merge_and_unload()`` as a statement of its own, and afterwards the same name is saved or used.
Why it matters: the method gives the merged model back; the wrapper stays what it was, and what is saved is the
adapter alone.
When it is fine: where the result is assigned, or the base object is what is used afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from peft import PeftModel
def main(base, path):
    model = PeftModel.from_pretrained(base, path)
    model.merge_and_unload()  # expect
    model.save_pretrained("merged")
""",
    """
class Export:
    def run(self):
        self.model.merge_and_unload(safe_merge=True)  # expect
        self.model.push_to_hub("me/merged")
""",
    """
import torch
def export(tuned):
    tuned.merge_and_unload()  # expect
    torch.save(tuned.state_dict(), "merged.pt")
""",
)
GOOD = """
from peft import PeftModel
def main(base, path):
    model = PeftModel.from_pretrained(base, path)
    model = model.merge_and_unload()
    model.save_pretrained("merged")
def combine(base, path):
    model = PeftModel.from_pretrained(base, path)
    model.merge_and_unload()
    base.save_pretrained("merged")
def switch(model):
    model.merge_adapter()
    model.save_pretrained("x")
def ask(model, ids):
    model.merge_and_unload()
    return model.generate(ids)
"""
USES = ("save_pretrained", "push_to_hub", "state_dict")
"""Uses that see the wrapper. A forward pass does not: the layers are merged in place."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("merge_and_unload"):
        statement = project.parent(call.node, call.scope)
        if not isinstance(statement, ast.Expr) or call.receiver is None:
            continue
        name = written(call.receiver)
        used = _used(project, call, name)
        if used is not None:
            text = f"{name}.{call.name}() gives the model back; {name} itself stays wrapped"
            fix = Fix(f"{name} = {name}.{call.name}()")
            yield sighting(__name__, call, text, proof=[used], fix=fix)


def _used(project: Project, call: Call, name: str) -> Call | None:
    for use in project.calls(*USES):
        if use.scope is call.scope and use.line > call.line and written(use.receiver) == name:
            return use
    return None
