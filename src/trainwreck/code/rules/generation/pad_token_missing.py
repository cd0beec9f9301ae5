"""A tokenizer without a padding token is asked to pad.

What: the tokenizer is made (or loaded, as for GPT-2 and LLaMA) without ``pad_token`` and none is set afterwards.
Why it matters: padding a batch raises.
When it is fine: for batches of one, or with packing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import complete, made, only, option
from trainwreck.code.huggingface import attribute_set, checkpoint_of, text_has, tokenizer_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

SURFACES = (
    r"does not have a padding token",
    r"pad_token|padding token",
    r"Cannot handle batch sizes > 1 if no padding token",
)
ERROR = "ValueError: Asking to pad but the tokenizer does not have a padding token."
BAD = (
    """
from transformers import AutoTokenizer
def main(texts):
    tokenizer = AutoTokenizer.from_pretrained("gpt2")  # expect
    return tokenizer(texts, padding=True)  # fails
""",
    """
from transformers import AutoTokenizer, DataCollatorWithPadding
tok = AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf")  # expect
collate = DataCollatorWithPadding(tokenizer=tok)
""",
    """
from transformers import GPT2TokenizerFast
class Texts:
    def __init__(self):
        self.tokenizer = GPT2TokenizerFast.from_pretrained("gpt2-medium")  # expect
    def collate(self, rows):
        return self.tokenizer([r["text"] for r in rows], padding="max_length", truncation=True, max_length=64)
""",
    """
from tokenizers import Tokenizer, models
from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast
def build(vocab):
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocab)), unk_token="[UNK]")  # expect
def main(vocab):
    tokenizer = build(vocab)
    return DataCollatorWithPadding(tokenizer)
""",
)
GOOD = (
    """
from transformers import AutoTokenizer
def main(texts):
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    tokenizer.pad_token = tokenizer.eos_token
    return tokenizer(texts, padding=True)  # fails
""",
    """
from transformers import AutoTokenizer
one = AutoTokenizer.from_pretrained("gpt2", pad_token="<|endoftext|>")(texts, padding=True)
two = AutoTokenizer.from_pretrained("gpt2")(texts)
three = AutoTokenizer.from_pretrained("bert-base-uncased")(texts, padding=True)
four = AutoTokenizer.from_pretrained("./mine")(texts, padding=True)
""",
    """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
tok.add_special_tokens({"pad_token": "[PAD]"})
out = tok(texts, padding=True)
""",
)


def find(project: Project) -> Iterator[Evidence]:
    """Checkpoints that are known to have no padding token, and a use that pads."""
    ways = ("setup_chat_format", "get_chat_template", "smart_tokenizer", "special_tokens_dict", "unsloth")
    if any(attribute_set(project, n) for n in ("pad_token", "pad_token_id")) or text_has(project, "pad_token", *ways):
        return
    for made_here in project.calls("PreTrainedTokenizerFast"):
        own = option(project, made_here, "tokenizer_object") is not None and project.from_package(
            made_here, "transformers"
        )
        use = _padding(project, made_here) if own and complete(project, made_here) else None
        if use is not None:
            text = "this tokenizer has no padding token, and it is asked to pad"
            yield sighting(__name__, made_here, text, proof=[use], fix=Fix('pad_token="[PAD]"'))
    for load in tokenizer_loads(project):
        known = checkpoint_of(project, load)
        if known is None or known.pad_token is not False or not known.decoder or not complete(project, load):
            continue
        use = _padding(project, load)
        if use is not None:
            text = f"the tokenizer of {known.id} has no padding token, and it is asked to pad"
            yield sighting(__name__, load, text, proof=[use], fix=Fix("tokenizer.pad_token = tokenizer.eos_token"))


def _padding(project: Project, load: Call) -> Call | None:
    """A call that pads with the tokenizer that ``load`` gives."""
    for call in project.calls(
        "DataCollatorWithPadding", "DataCollatorForSeq2Seq", "DataCollatorForTokenClassification"
    ):
        given = option(project, call, "tokenizer", 0)
        if given is not None and any(c.node is load.node for c in made(project, *given)):
            return call
    for node, scope in project.walked[load.scope.module.path].calls:
        call = Call(node, scope)
        asked = only(project, option(project, call, "padding")) in (True, "longest", "max_length")
        if asked and isinstance(node.func, ast.Name | ast.Attribute | ast.Call):
            holder = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "pad" else node.func
            if any(c.node is load.node for c in made(project, holder, scope)):
                return call
    return None


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    if any(name.endswith(".pad_token") for s in project.scopes for name in s.bindings):
        return
    for call in _makers(project):
        if call.argument("pad_token") is None:
            yield guess(__name__, call, "the tokenizer is made here, without a padding token")
            return


def _makers(project: Project) -> Iterator[Call]:
    for name, calls in project.calls_by_name.items():
        for call in calls:
            if (name.endswith(("Tokenizer", "TokenizerFast")) and name != "Tokenizer") or (
                name == "from_pretrained"
                and ("okenizer" in written(call.node.func) or "rocessor" in written(call.node.func))
            ):
                yield call
