"""A chat model is given raw text.

What: the texts for ``generate`` of an instruct checkpoint carry no template, and nothing in the file applies one.
Why it matters: the model was tuned on its template: without it answers are worse, and it does not know where to stop.
When it is fine: where the markers stand in the text, and where completion is what is measured.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.catalogue import hub
from trainwreck.code.calls import Call
from trainwreck.code.facts import made
from trainwreck.code.huggingface import loaded_by, model_loads, name_of, trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from vllm import LLM, SamplingParams
llm = LLM(model="Qwen/Qwen2.5-7B-Instruct")
out = llm.generate(["What is the capital of France?"], SamplingParams(max_tokens=64))  # expect
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
NAME = "meta-llama/Llama-3.1-8B-Instruct"
tok = AutoTokenizer.from_pretrained(NAME)
model = AutoModelForCausalLM.from_pretrained(NAME)
def ask(question):
    ids = tok(question, return_tensors="pt")
    return tok.decode(model.generate(**ids, max_new_tokens=64)[0])  # expect
""",
)
GOOD = (
    """
from vllm import LLM, SamplingParams
llm = LLM(model="Qwen/Qwen2.5-7B-Instruct")
out = llm.chat([{"role": "user", "content": "hi"}], SamplingParams(max_tokens=64))
base = LLM(model="Qwen/Qwen2.5-7B").generate(texts)
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
NAME = "meta-llama/Llama-3.1-8B-Instruct"
tok = AutoTokenizer.from_pretrained(NAME)
model = AutoModelForCausalLM.from_pretrained(NAME)
def ask(chat):
    ids = tok.apply_chat_template(chat, return_tensors="pt", return_dict=True, add_generation_prompt=True)
    return tok.decode(model.generate(**ids, max_new_tokens=64)[0])
""",
    """
from transformers import AutoModelForCausalLM, AutoTokenizer
tok = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-7B-Instruct")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct")
ids = tok(f"<|im_start|>user\\n{question}<|im_end|>\\n<|im_start|>assistant\\n", return_tensors="pt")
out = model.generate(**ids, max_new_tokens=64)
""",
)
MARKED = pattern(
    r"apply_chat_template|<\|im_start|\[INST\]|start_header_id|<start_of_turn>|<\|user|<\|assistant|### |ASSISTANT:|"
    r"chat_template|Assistant:|conv_template|get_conversation|prompt_template|format_prompt|build_prompt|USER:|Human:"
)
INSTRUCT = pattern(r"(?i)(^|[-_/.])(instruct|chat|it)([-_.]|$)")
"""Parts of names that publishers give to checkpoints that were tuned on a template."""


def find(project: Project) -> Iterator[Evidence]:
    if trains(project):
        return
    for call in project.calls("generate"):
        if MARKED.search(call.scope.module.text) or call.receiver is None:
            continue
        if any(k.arg == "inputs_embeds" for k in call.node.keywords):
            continue
        load = _engine(project, call) or loaded_by(project, call.receiver, call.scope, model_loads(project))
        name = name_of(project, load) if load is not None else None
        if load is None or not name or not _instruct(name) or _images(project, call):
            continue
        text = f"{name} is a chat model, and nothing here applies its template"
        fix = Fix("tokenizer.apply_chat_template(..., add_generation_prompt=True), or llm.chat")
        yield sighting(__name__, call, text, proof=[load], fix=fix)


def _engine(project: Project, call: Call) -> Call | None:
    makers = made(project, call.receiver, call.scope) if call.receiver is not None else []
    found = [m for m in makers if m.name == "LLM" and project.from_package(m, "vllm")]
    return found[0] if len(found) == 1 else None


def _instruct(name: str) -> bool:
    known = hub.checkpoint(name)
    if known is not None:
        return known.kind == "instruct" and known.decoder
    return bool(INSTRUCT.search(name)) and "/" in name and not name.startswith((".", "/"))


def _images(project: Project, call: Call) -> bool:
    """Multimodal input is made by a processor that brings its own format."""
    names = {n.id for n in ast.walk(call.node) if isinstance(n, ast.Name)}
    return bool(names & {"pixel_values", "image", "images", "processor"}) or "Processor" in call.scope.module.text
