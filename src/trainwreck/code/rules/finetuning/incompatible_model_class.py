"""The model class does not fit the checkpoint or the task.

What: ``AutoModelForCausalLM`` for an encoder-decoder, ``AutoModelForSeq2SeqLM`` for a decoder, or ``AutoModel``, which
has no head, for a Trainer or for generating.
Why it matters: the class is refused, or there is no loss and no generation.
When it is fine: ``AutoModel`` for embeddings, and with remote code.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import only, option
from trainwreck.code.huggingface import (
    checkpoint_of,
    holder,
    loaded_by,
    model_loads,
    trainer_calls,
    trainer_option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

WORDS = ("from_pretrained", "from_config", "transformers")
BAD = (
    """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("google/flan-t5-base")  # expect
""",
    """
from transformers import AutoModelForSeq2SeqLM
model = AutoModelForSeq2SeqLM.from_pretrained("gpt2")  # expect
""",
    """
from transformers import AutoModel, Trainer
def main(args, data):
    model = AutoModel.from_pretrained("me/checkpoint")  # expect
    Trainer(model=model, args=args, train_dataset=data).train()
""",
    """
from transformers import AutoModel
model = AutoModel.from_pretrained("gpt2")  # expect
print(model.generate(ids, max_new_tokens=10))
""",
)
GOOD = """
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, Trainer
one = AutoModelForSeq2SeqLM.from_pretrained("google/flan-t5-base")
two = AutoModelForCausalLM.from_pretrained("gpt2")
three = AutoModelForCausalLM.from_pretrained("facebook/bart-base")
embed = AutoModel.from_pretrained("bert-base-uncased")
vector = embed(**batch).last_hidden_state
remote = AutoModel.from_pretrained("x/chat", trust_remote_code=True)
remote.generate(ids)
"""


def find(project: Project) -> Iterator[Evidence]:
    for load in model_loads(project):
        known, name = checkpoint_of(project, load), holder(load)
        if known is not None and name == "AutoModelForCausalLM" and known.family == "t5":
            text = f"{known.id} is an encoder-decoder; this class is for decoders"
            yield sighting(__name__, load, text)
        elif known is not None and name == "AutoModelForSeq2SeqLM" and known.decoder:
            text = f"{known.id} is a decoder; this class is for encoder-decoders"
            yield sighting(__name__, load, text)
        elif name == "AutoModel" and only(project, option(project, load, "trust_remote_code")) is None:
            user = _needs_head(project, load)
            if user is not None and (user.name != "generate" or (known is not None and known.decoder)):
                yield sighting(__name__, load, "AutoModel has no head: no loss, no generation", proof=[user])


def _needs_head(project: Project, load: Call) -> Call | None:
    """A call that trains or generates with exactly what ``load`` gives."""
    loads = model_loads(project)
    for trainer in trainer_calls(project):
        own = project.resolve(trainer.node.func, trainer.scope)
        if own is not None or trainer.name not in ("Trainer", "Seq2SeqTrainer"):
            continue
        given = trainer_option(project, trainer, "model")
        if given is not None and loaded_by(project, *given, loads) is load:
            return trainer
    for call in project.calls("generate"):
        if call.receiver is not None and loaded_by(project, call.receiver, call.scope, loads) is load:
            return call
    return None
