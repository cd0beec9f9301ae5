"""A server is asked for a longer context than its model has.

What: `--max-model-len` of vLLM or `--context-length` of SGLang above the positions of the model.
Why it matters: vLLM refuses to start ("max_model_len is greater than the derived …"); where it is forced, the answers
fall apart beyond the trained length.
When it is fine: with `rope_scaling` (or `hf_overrides`), and where longer lengths are allowed on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue import hub
from trainwreck.code.project import Project
from trainwreck.code.settings.bags import Bag, bags
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = """
#--- serve.sh
vllm serve meta-llama/Meta-Llama-3-8B-Instruct --max-model-len 32768  # expect
python -m vllm.entrypoints.openai.api_server --model meta-llama/Meta-Llama-3-8B --max_model_len=16384  # expect
"""
GOOD = """
#--- serve.sh
vllm serve meta-llama/Meta-Llama-3-8B-Instruct --max-model-len 8192
vllm serve meta-llama/Meta-Llama-3-8B-Instruct --max-model-len 32768 --rope-scaling '{"rope_type": "dynamic"}'
vllm serve my/model --max-model-len 1000000
VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve meta-llama/Meta-Llama-3-8B-Instruct --max-model-len 32768
"""
FORCING = ("rope_scaling", "hf_overrides", "json_model_override_args", "rope_theta")


def find(project: Project) -> Iterator[Evidence]:
    for bag in bags(project):
        if bag.reader not in ("vllm", "sglang") or bag.python or bag.get(*FORCING) is not None:
            continue
        forced = bag.launch is not None and bag.launch.variable("VLLM_ALLOW_LONG_MAX_MODEL_LEN") is not None
        length, name = bag.get("max_model_len", "context_length"), model_of(bag)
        known = hub.checkpoint(name) if name else None
        if length is None or length.number is None or known is None or known.positions is None or forced:
            continue
        if length.number > known.positions:
            text = f"{length.text} tokens are asked for, but {known.id} has {known.positions} positions"
            yield told(__name__, length, text, fix=f"{known.positions} at most")


def model_of(bag: Bag) -> str:
    """The model that a server is started with: an option, or the first word of ``vllm serve``."""
    named = bag.get("model", "model_path", "model_tag")
    if named is not None:
        return named.value if isinstance(named.value, str) else ""
    first = bag.launch.args[0] if bag.launch is not None and bag.launch.args else None
    return first.text if first is not None and first.known and not first.text.startswith("-") else ""
