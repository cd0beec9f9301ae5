"""A checkpoint can't rebuild its module.

What: ``Net.load_from_checkpoint(path)`` of a module whose ``__init__`` needs arguments and never calls
``save_hyperparameters``.
Why it matters: the arguments are not in the checkpoint: a TypeError.
When it is fine: where the arguments are given to ``load_from_checkpoint``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import text_of
from trainwreck.code.lightning import lightning_modules
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("ightning",)
BAD = (
    """
import lightning as L
class Net(L.LightningModule):
    def __init__(self, width, lr=1e-3):
        super().__init__()
        self.width = width
net = Net.load_from_checkpoint("best.ckpt")  # expect
""",
)
GOOD = """
import lightning as L
class Net(L.LightningModule):
    def __init__(self, width, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
class Plain(L.LightningModule):
    def __init__(self, width=3):
        super().__init__()
class Told(L.LightningModule):
    def __init__(self, width):
        super().__init__()
a, b = Net.load_from_checkpoint("a.ckpt"), Plain.load_from_checkpoint("b.ckpt")
c = Told.load_from_checkpoint("c.ckpt", width=3)
"""


def find(project: Project) -> Iterator[Evidence]:
    modules = lightning_modules(project)
    for call in project.calls("load_from_checkpoint") if modules else ():
        owner = project.resolve(call.receiver, call.scope) if call.receiver is not None else None
        if owner is None or owner not in modules or call.open_ended:
            continue
        made = project.find_method(owner, "__init__")
        if made is None or not isinstance(made.node, ast.FunctionDef):
            continue
        saved = any("save_hyperparameters" in text_of(project, base) for base in project.bases(owner))
        args = made.node.args
        needed = [a.arg for a in args.args[1 : len(args.args) - len(args.defaults)]]
        given = {k.arg for k in call.node.keywords}
        missing = [n for n in needed if n not in given]
        if missing and not saved:
            text = f"{owner.name} needs {', '.join(missing)}, which no checkpoint holds"
            fix = Fix("self.save_hyperparameters() in __init__")
            yield sighting(__name__, call, text, proof=[(owner.module.path, made.node.lineno, "__init__")], fix=fix)
