"""A chat template is asked of a tokenizer that has none.

What: ``apply_chat_template`` of the tokenizer of a base checkpoint that is known to bring no template, and none is set.
Why it matters: since transformers 4.44 there is no default: a ValueError.
When it is fine: with ``chat_template=``, ``tokenizer.chat_template = ...``, or a checkpoint that has one.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import complete, made, option
from trainwreck.code.huggingface import attribute_set, checkpoint_of, text_has, tokenizer_loads
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
text = tok.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)  # expect
""",
    """
from transformers import AutoTokenizer
NAME = "meta-llama/Llama-2-7b-hf"
def prepare(rows):
    tokenizer = AutoTokenizer.from_pretrained(NAME)
    return rows.map(lambda r: {"ids": tokenizer.apply_chat_template(r["messages"])})  # expect
""",
)
GOOD = (
    """
from transformers import AutoTokenizer
tok = AutoTokenizer.from_pretrained("gpt2")
tok.chat_template = TEMPLATE
text = tok.apply_chat_template(chat, tokenize=False)
""",
    """
from transformers import AutoTokenizer
base = AutoTokenizer.from_pretrained("gpt2")
chat = AutoTokenizer.from_pretrained("meta-llama/Llama-2-7b-chat-hf")
own = AutoTokenizer.from_pretrained("./mine")
one = base.apply_chat_template(rows, chat_template=TEMPLATE)
two = chat.apply_chat_template(rows), own.apply_chat_template(rows)
""",
)


def find(project: Project) -> Iterator[Evidence]:
    if attribute_set(project, "chat_template") or text_has(project, "setup_chat_format", "clone_chat_template"):
        return
    loads = {c.node: c for c in tokenizer_loads(project)}
    for call in project.calls("apply_chat_template"):
        makers = made(project, call.receiver, call.scope) if call.receiver is not None else []
        used = [loads[m.node] for m in makers if m.node in loads]
        known = checkpoint_of(project, used[0]) if len(used) == 1 else None
        if known is None or known.chat_template is not False or option(project, call, "chat_template") is not None:
            continue
        if complete(project, used[0]) and option(project, used[0], "chat_template") is None:
            text = f"{known.id} brings no chat template, and none is set"
            fix = Fix("use the instruct checkpoint, or set tokenizer.chat_template")
            yield sighting(__name__, call, text, proof=used, fix=fix)
