"""Tensor parallelism that does not divide the heads.

What: `--tensor-parallel-size` (`--tp`) that the number of attention heads of the model is no multiple of.
Why it matters: the engine refuses to start: the heads are dealt out evenly over the GPUs.
When it is fine: for models whose heads are not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue import hub
from trainwreck.code.project import Project
from trainwreck.code.rules.config.max_len_above_derived import model_of
from trainwreck.code.settings.bags import bags
from trainwreck.code.settings.told import told
from trainwreck.core.evidence import Evidence

BAD = """
#--- serve.sh
vllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 8  # expect
python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B-Instruct --tp 3  # expect
"""
GOOD = """
#--- serve.sh
vllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 4
vllm serve Qwen/Qwen2.5-7B-Instruct -tp 2
vllm serve my/model --tensor-parallel-size 3
vllm serve Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size $N
"""


def find(project: Project) -> Iterator[Evidence]:
    for bag in bags(project):
        if bag.reader not in ("vllm", "sglang") or bag.python:
            continue
        size, name = bag.get("tensor_parallel_size", "tp_size", "tp"), model_of(bag)
        known = hub.checkpoint(name) if name else None
        if size is None or size.number is None or known is None or not known.heads or size.number < 2:
            continue
        if known.heads % size.number:
            text = f"{known.id} has {known.heads} attention heads, which {size.text} GPUs cannot share evenly"
            yield told(__name__, size, text)
