"""The old name of what a trainer tokenizes with.

What: `tokenizer=` handed to a Trainer of transformers or TRL.
Why it matters: the constructor raises a TypeError.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import Trainer
from trl import SFTTrainer as Tuner
def build(model, args, data, tok):
    Tuner(model=model, args=args, train_dataset=data, tokenizer=tok)  # expect
    return Trainer(model=model, args=args, train_dataset=data, tokenizer=tok)  # expect
"""
GOOD = """
from transformers import Trainer
from openrlhf.trainer import SFTTrainer
class Own(Trainer):
    def __init__(self, *args, tokenizer=None, **kwargs):
        super().__init__(*args, processing_class=tokenizer, **kwargs)
def build(model, args, data, tok):
    SFTTrainer(model=model, tokenizer=tok)
    Own(model=model, args=args, tokenizer=tok)
    return Trainer(model=model, args=args, train_dataset=data, processing_class=tok)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
