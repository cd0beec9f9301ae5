"""A collator that masks words, for a model that predicts the next one.

What: ``DataCollatorForLanguageModeling`` without ``mlm=False`` beside a causal language model.
Why it matters: ``mlm`` is on by default: 15 percent of the tokens are replaced and only they count in the loss.
When it is fine: with ``mlm=False``, or for masked language models.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import complete, only, option
from trainwreck.code.huggingface import checkpoint_of, holder, model_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM, DataCollatorForLanguageModeling, Trainer
def main(args, data, tok):
    model = AutoModelForCausalLM.from_pretrained("m")
    collate = DataCollatorForLanguageModeling(tok)  # expect
    Trainer(model=model, args=args, train_dataset=data, data_collator=collate).train()
""",
    """
from transformers import DataCollatorForLanguageModeling, GPT2LMHeadModel
model = GPT2LMHeadModel.from_pretrained("gpt2")
collate = DataCollatorForLanguageModeling(tokenizer=tok, mlm=True, mlm_probability=0.15)  # expect
""",
)
GOOD = """
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, DataCollatorForLanguageModeling
one = AutoModelForCausalLM.from_pretrained("m"), DataCollatorForLanguageModeling(tok, mlm=False)
two = DataCollatorForLanguageModeling(tok, False)
three = DataCollatorForLanguageModeling(tok, mlm=masked)
four = DataCollatorForLanguageModeling(tok, **options)
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("DataCollatorForLanguageModeling"):
        if not project.from_package(call, "transformers") or not complete(project, call):
            continue
        if only(project, option(project, call, "mlm", 1)) not in (None, True):
            continue
        here = [c for c in model_loads(project) if c.scope.module.path == call.scope.module.path]
        known = [checkpoint_of(project, c) for c in here]
        causal = [c for c in here if holder(c).endswith(("ForCausalLM", "LMHeadModel"))]
        if causal and len(causal) == len(here) and not any(k is not None and not k.decoder for k in known):
            text = "this collator masks words (mlm is on), and the model predicts the next one"
            yield sighting(__name__, call, text, proof=causal[:1], fix=Fix("mlm=False"))
