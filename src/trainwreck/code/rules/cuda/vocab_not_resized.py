"""Tokens are added after the embedding was sized.

What: ``add_tokens``, ``add_special_tokens`` or an own vocabulary's ``add`` after the model was built, without
``resize_token_embeddings``.
Why it matters: the new ids have no row: an IndexError on the CPU, an assert on a GPU.
When it is fine: where the table is larger than the vocabulary, or resized afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"index out of range in self", r"srcIndex < srcSelectDimSize|indexSelect", r"device-side assert")
ERROR = "IndexError: index out of range in self"
BAD = """
from torch import nn
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.tok = nn.Embedding(n, 8)
    def forward(self, ids):
        return self.tok(ids)  # fails
def main(vocab, loader):
    net = Net(len(vocab))
    vocab.add("<sep>")  # expect
    for ids in loader:
        net(ids)
"""
GOOD = """
from transformers import AutoModel, AutoTokenizer
def main(loader):
    tokenizer = AutoTokenizer.from_pretrained("x")
    model = AutoModel.from_pretrained("x")
    tokenizer.add_tokens(["<sep>"])
    model.resize_token_embeddings(len(tokenizer))
    for ids in loader:
        model(ids)  # fails
"""
ADDERS = ("add_tokens", "add_special_tokens", "add_token", "add", "append_token", "add_word", "insert_token", "extend")


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    if any(True for _ in project.calls("resize_token_embeddings", "resize_embeddings")):
        return
    for call in project.calls(*ADDERS):
        text = written(call.receiver).lower()
        known = call.name in ADDERS[:2] or "vocab" in text or "token" in text or "lookup" in text
        if known and call.scope.owner is None and _model_before(project, call):
            yield guess(__name__, call, "a token is added here after the model was built with the old vocabulary")
            return


def _model_before(project: Project, call: Call) -> bool:
    """True if, earlier in the same function, something is built with the size of what is added to."""
    name = written(call.receiver)
    for other in (Call(n, s) for n, s in project.walked[call.scope.module.path].calls if s is call.scope):
        if other.line < call.line and other is not call:
            if other.name == "from_pretrained" and "oken" not in written(other.node.func):
                return True
            texts = [written(a) for a in (*other.node.args, *(k.value for k in other.node.keywords))]
            if any("len(" in t and name in t for t in texts) and other.name not in ("print", "range", "log"):
                return True
            if any(name in t for t in texts) and any(True for _ in constructors(project, other.node.func, other.scope)):
                return True
    return False
