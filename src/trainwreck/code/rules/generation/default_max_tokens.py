"""Answers are cut at the small default of the library.

What: ``SamplingParams`` of vLLM without ``max_tokens`` (16), sampling parameters of SGLang without
``max_new_tokens`` (128), or ``generate`` of transformers without any length (20 tokens in all, where the checkpoint
does not say more).
Why it matters: answers end in the middle of a sentence.
When it is fine: with a length, and with ``chat`` of vLLM, which takes what is left of the context.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.arguments import attributes_set
from trainwreck.code.calls import Call
from trainwreck.code.facts import complete, made, option
from trainwreck.code.huggingface import checkpoint_of, holder, loaded_by, model_loads, text_has
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.values import literal
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from vllm import LLM, SamplingParams
llm = LLM("m")
params = SamplingParams(temperature=0.7)  # expect
for out in llm.generate(prompts, params):
    print(out.outputs[0].text)
""",
    """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2")
ids = model.generate(**batch, do_sample=True)  # expect
""",
    """
from vllm import LLM
llm = LLM(model="m")
print(llm.generate(["Tell me a story"]))  # expect
""",
    """
import sglang as sgl
engine = sgl.Engine(model_path="m")
out = engine.generate(prompts, {"temperature": 0.8})  # expect
""",
)
GOOD = """
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
from vllm import LLM, SamplingParams
llm = LLM("m")
long = SamplingParams(max_tokens=512)
read = SamplingParams(**options)
llm.generate(prompts, long), llm.generate(prompts, read), llm.chat(chats)
model = AutoModelForCausalLM.from_pretrained("gpt2")
model.generate(**batch, max_new_tokens=100), model.generate(ids, max_length=200), model.generate(ids, config)
other = AutoModelForCausalLM.from_pretrained("me/own")
other.generate(ids)
import sglang as sgl
engine = sgl.Engine(model_path="m")
engine.generate(prompts, {"max_new_tokens": 900}), engine.generate(prompts, params)
"""
LENGTHS = ("max_new_tokens", "max_length", "stopping_criteria", "generation_config", "max_time")
PLAIN = frozenset(["gpt2", "opt", "gpt_neo", "gpt_neox", "bloom"])
"""Families whose checkpoints bring no length of their own."""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("SamplingParams"):
        outside = (
            project.from_package(call, "vllm") and complete(project, call) and call.node.keywords and not call.node.args
        )
        if outside and option(project, call, "max_tokens") is None and not _chats(project):
            if "max_tokens" in attributes_set(project):
                continue
            text = "vLLM stops after 16 tokens unless max_tokens is given"
            yield sighting(__name__, call, text, fix=Fix("max_tokens=512"))
    for call in project.calls("generate"):
        if call.receiver is None or not complete(project, call):
            continue
        makers = made(project, call.receiver, call.scope)
        engine = [m for m in makers if m.name == "LLM" and project.from_package(m, "vllm")]
        if engine and len(call.node.args) == 1 and not call.node.keywords:
            text = "vLLM stops after 16 tokens unless sampling parameters say otherwise"
            yield sighting(__name__, call, text, proof=engine, fix=Fix("SamplingParams(max_tokens=512)"))
        served = any(m.name == "Engine" and project.from_package(m, "sglang") for m in makers)
        given = option(project, call, "sampling_params", 1)
        found = literal(project, *given) if served and given is not None else None
        if found is not None and isinstance(found[0], ast.Dict):
            keys = {k.value for k in found[0].keys if isinstance(k, ast.Constant)}
            if "max_new_tokens" not in keys and None not in found[0].keys:
                text = "SGLang stops after 128 tokens unless max_new_tokens is given"
                yield sighting(__name__, call, text, proof=makers[:1], fix=Fix('"max_new_tokens": 512'))
    yield from _transformers(project)


def _transformers(project: Project) -> Iterator[Evidence]:
    if text_has(project, "generation_config", "GenerationConfig", "config.max_length"):
        return
    for call in project.calls("generate"):
        load = loaded_by(project, call.receiver, call.scope, model_loads(project))
        known = checkpoint_of(project, load) if load is not None else None
        if load is None or known is None or known.family not in PLAIN or len(call.node.args) > 1:
            continue
        opened = any(k.arg is None for k in call.node.keywords)
        lengths = [n for n in LENGTHS if option(project, call, n) is not None]
        if (
            not lengths
            and holder(load).endswith(("ForCausalLM", "LMHeadModel"))
            and (complete(project, call) or opened)
        ):
            if _may_bring(call):
                continue
            text = "generation ends at 20 tokens, the prompt included, unless a length is given"
            yield sighting(__name__, call, text, proof=[load], fix=Fix("max_new_tokens=256"))


def _may_bring(call: Call) -> bool:
    """True where ``**options`` may hold a length: anything but what a tokenizer gives."""
    for item in call.node.keywords:
        if item.arg is None:
            name = getattr(item.value, "id", "")
            if name not in (
                "batch",
                "inputs",
                "encoded",
                "enc",
                "encoding",
                "tokens",
                "ids",
                "input_ids",
                "model_inputs",
            ):
                return True
    return False


def _chats(project: Project) -> bool:
    """``chat`` and servers take what is left of the context."""
    return any(True for _ in project.calls("chat")) or not any(True for _ in project.calls("generate"))
