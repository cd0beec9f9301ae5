"""Tokenizer and model come from different families, or the texts of the evaluation have a vocabulary of their own.

What: the one tokenizer and the one model of a program are loaded from two known checkpoints whose vocabularies differ;
or the program numbers the words of its evaluation texts anew.
Why it matters: the ids mean other words, or lie outside the embedding.
When it is fine: for two checkpoints of one family, and for local paths, of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue.hub import Checkpoint
from trainwreck.code.calls import Call
from trainwreck.code.huggingface import checkpoint_of, holder, model_loads, name_of, tokenizer_loads
from trainwreck.code.mappings import made_apart
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import AutoModelForSequenceClassification, AutoTokenizer
tok = AutoTokenizer.from_pretrained("bert-base-uncased")  # expect
model = AutoModelForSequenceClassification.from_pretrained("roberta-base", num_labels=2)
""",
    """
from transformers import AutoModelForCausalLM, GPT2Tokenizer
NAME = "mistralai/Mistral-7B-v0.1"
def build():
    return GPT2Tokenizer.from_pretrained("gpt2"), AutoModelForCausalLM.from_pretrained(NAME)  # expect
""",
    """
import transformers
tok = transformers.AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-hf")  # expect
lm = transformers.AutoModelForCausalLM.from_pretrained("meta-llama/Meta-Llama-3-8B")
""",
)
GOOD = (
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
model = AutoModelForCausalLM.from_pretrained("distilgpt2")
""",
    """
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
model = AutoModelForCausalLM.from_pretrained("gpt2")
judge = AutoModel.from_pretrained("bert-base-uncased")
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
model = AutoModelForCausalLM.from_pretrained("./out")
""",
)
CLOSE = 0.02
"""Vocabularies of one tokenizer differ by added and padding rows only, which is less than this share."""


def find(project: Project) -> Iterator[Evidence]:
    yield from _checkpoints(project)
    for theirs, other in made_apart(project):
        text = "the words of the evaluation are numbered anew here: the network learned other numbers for them"
        yield sighting(__name__, theirs, text, proof=[other])


def _checkpoints(project: Project) -> Iterator[Evidence]:
    for path in project.walked:
        tokenizers = [c for c in tokenizer_loads(project) if c.scope.module.path == path]
        models = [c for c in model_loads(project) if c.scope.module.path == path]
        if len({name_of(project, c) for c in tokenizers}) != 1 or len({name_of(project, c) for c in models}) != 1:
            continue
        one, other = checkpoint_of(project, tokenizers[0]), checkpoint_of(project, models[0])
        if one is None or other is None or not _text(one) or not _text(other) or _special(models[0], tokenizers[0]):
            continue
        if _differ(one, other):
            text = f"the tokenizer of {one.id} gives ids of another vocabulary than {other.id} was trained on"
            yield sighting(__name__, tokenizers[0], text, proof=models[:1])


def _text(known: Checkpoint) -> bool:
    return known.vocabulary is not None and (known.decoder or known.task in ("encoder", "seq2seq"))


def _special(model: Call, tokenizer: Call) -> bool:
    return "EncoderDecoder" in holder(model) or "Processor" in holder(tokenizer)


def _differ(one: Checkpoint, other: Checkpoint) -> bool:
    if one.vocabulary is None or other.vocabulary is None:
        return False
    apart = abs(one.vocabulary - other.vocabulary) / max(one.vocabulary, other.vocabulary)
    return apart > CLOSE or ({one.family, other.family} == {"bert", "gpt2"})
