"""A model is loaded, built or compiled again in every turn of a loop.

What: ``from_pretrained``, ``pipeline``, ``SentenceTransformer``, ``torch.compile`` or ``torch.jit.script`` stands in
the loop over batches, samples or steps, with arguments that the loop does not change.
Why it matters: each turn pays seconds for what is the same each time; memory grows where the old one is still held.
When it is fine: in a loop over models, seeds or folds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import names
from trainwreck.code.order import loops
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import AutoTokenizer
def encode(texts):
    out = []
    for text in texts:
        tokenizer = AutoTokenizer.from_pretrained("gpt2")  # expect
        out.append(tokenizer(text))
    return out
""",
    """
import torch
for batch in loader:
    fast = torch.compile(model)  # expect
    loss = fast(batch).mean()
    loss.backward()
""",
    """
from sentence_transformers import SentenceTransformer
import tqdm
def score(rows):
    for i, row in enumerate(tqdm.tqdm(rows)):
        encoder = SentenceTransformer("all-MiniLM-L6-v2", device="cuda")  # expect
        row["v"] = encoder.encode(row["text"])
""",
)
GOOD = """
from transformers import AutoModel, AutoTokenizer
import torch
def main(names, texts, seeds, folds):
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    for name in names:
        model = AutoModel.from_pretrained(name)
    for text in texts:
        tokenizer(text)
    for seed in range(5):
        model = AutoModel.from_pretrained("gpt2")
        model.train()
    for fold in folds:
        fresh = AutoModel.from_pretrained("gpt2")
    for i, text in enumerate(texts):
        if i == 0:
            model = torch.compile(model)
    models = [AutoModel.from_pretrained("gpt2") for _ in range(3)]
"""
BUILDS = ("from_pretrained", "pipeline", "SentenceTransformer", "compile", "script", "load_model")
OWNERS = pattern(r"^(transformers|sentence_transformers|torch|spacy|diffusers|peft)\.")
ITEMS = pattern(
    r"^(batch|sample|text|row|line|prompt|question|example|item|doc|sentence|image|img|step|x|xb|inputs?|data|idx|token)"
)
"""Names of a loop variable that stands for one piece of data or one step."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*BUILDS):
        full = project.called(call)
        if not OWNERS.match(full) or (call.name == "compile" and full != "torch.compile"):
            continue
        loop = next((x for x in loops(project, call.node, call.scope) if isinstance(x, ast.For)), None)
        if loop is None or not any(ITEMS.match(n) for n in names(loop.target)):
            continue
        if names(call.node) & _bound(loop) or _guarded(project, call, loop):
            continue
        text = "this is the same in every turn of the loop, and is done anew each time"
        head = (call.scope.module.path, loop.lineno, f"for {ast.unparse(loop.target)} in ...")
        yield sighting(__name__, call, text, proof=[head])


def _bound(loop: ast.For) -> set[str]:
    """Names that the loop binds before (or in) the call; what is built from them changes."""
    found = names(loop.target)
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign):
            built = isinstance(node.value, ast.Call) and last_name(node.value.func) in BUILDS
            found |= set() if built else {n for t in node.targets for n in names(t)}
    return found


def _guarded(project: Project, call: Call, loop: ast.For) -> bool:
    for above in project.ancestors(call.node, call.scope):
        if above is loop:
            return False
        if isinstance(above, ast.If | ast.Try | ast.IfExp):
            return True
    return True
