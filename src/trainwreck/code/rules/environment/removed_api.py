"""An argument that a library moved or renamed.

What: a keyword that older releases took (``tokenizer=`` of Trainer, ``evaluation_strategy=``, ``max_seq_length=``
of SFT).
Why it matters: the constructor refuses it, or takes it and ignores it.
When it is fine: with the release that still knew it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code import torch_changes
from trainwreck.code.outdated import told, unnamed
from trainwreck.code.outdated_files import options
from trainwreck.code.project import Project
from trainwreck.code.rule import SIGN_PREFIX, guess, sign_of
from trainwreck.code.seek import keyword_place
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"unexpected keyword argument", r"has no attribute|cannot import name")
ERROR = "TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'"
BAD = """
from transformers import Trainer
def main(model, args, data, tok):
    trainer = Trainer(  # fails
        model=model,
        args=args,
        train_dataset=data,
        tokenizer=tok,  # expect
    )
"""
GOOD = """
from transformers import Trainer
def main(model, args, data, tok):
    return Trainer(model=model, args=args, processing_class=tok)  # fails
"""


def find(project: Project) -> Iterator[Evidence]:
    """Keywords, names and modules that some release has and the one meant has not, as far as no rule of its own
    speaks of them."""
    yield from told(project, __name__)
    yield from unnamed(project, __name__, known=True, kinds=("argument", "name", "module", "open"))
    yield from options(project, __name__, named=False)
    yield from torch_changes.told(project, __name__, sign_of(__name__).removeprefix(SIGN_PREFIX))


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from named_keyword(project, surface, __name__, libraries=True)


def named_keyword(project: Project, surface: Surface, rule: str, *, libraries: bool) -> Iterator[Evidence]:
    """The keyword that the message names, in a call on the failing lines (of a library, or of the project's own)."""
    found = re.search(r"unexpected keyword argument '(\w+)'", surface.message)
    if found is None:
        return
    for call in surface.calls(project):
        place = keyword_place(call, found.group(1))
        own = project.resolve(call.node.func, call.scope) is not None
        if place is not None and own != libraries:
            yield guess(rule, place, f"{call.name} is given {found.group(1)} here")
            return
