"""Quantisation asked for by a keyword of from_pretrained.

What: `load_in_4bit` or `load_in_8bit` given to `from_pretrained` of a transformers class.
Why it matters: transformers 5 hands the keyword on to the model, which refuses it.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own. Other libraries (Unsloth, vLLM) have keywords of this name.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import AutoModelForCausalLM
def load(name):
    return AutoModelForCausalLM.from_pretrained(name, load_in_4bit=True, device_map="auto")  # expect
"""
GOOD = """
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from unsloth import FastLanguageModel
def load(name):
    FastLanguageModel.from_pretrained(name, load_in_4bit=True)
    return AutoModelForCausalLM.from_pretrained(name, quantization_config=BitsAndBytesConfig(load_in_4bit=True))
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
