"""Settings of generation are put on the configuration of the model.

What: ``model.config.max_length = ...`` (or temperature, do_sample, num_beams) before ``generate``, with transformers 5.
Why it matters: generation reads ``generation_config``: the setting is ignored, or saving refuses it.
When it is fine: below transformers 5, where it still counted with a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.huggingface import loaded_by, model_loads, release
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix

BAD = (
    """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("m")
model.config.temperature = 0.2  # expect
model.config.do_sample = True  # expect
out = model.generate(ids, max_new_tokens=20)
""",
)
GOOD = """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("m")
model.generation_config.temperature = 0.2
model.config.pad_token_id = 0
model.config.use_cache = False
own.config.temperature = 0.3
out = model.generate(ids, max_new_tokens=20)
"""
SETTINGS = frozenset(
    ["do_sample", "temperature", "top_k", "top_p", "num_beams", "max_length", "min_length", "repetition_penalty",
     "length_penalty", "no_repeat_ngram_size", "early_stopping", "num_return_sequences"]
)  # fmt: skip


def find(project: Project) -> Iterator[Evidence]:
    loads = model_loads(project)
    if not loads or not any(True for _ in project.calls("generate")):
        return
    for scope in project.scopes:
        since = release(project, "transformers", scope.module.path, (5,)) if "generate" in scope.module.text else "no"
        for node in project.within(scope, ast.Assign) if since != "no" else ():
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if not isinstance(target, ast.Attribute) or target.attr not in SETTINGS:
                continue
            base = target.value
            if not isinstance(base, ast.Attribute) or last_name(base) != "config":
                continue
            if loaded_by(project, base.value, scope, loads) is not None:
                severity: Severity = "warning" if since == "yes" else "suggestion"
                text = f"transformers 5 reads {target.attr} from generation_config, not from config"
                fix = Fix(f"model.generation_config.{target.attr} = ..., or an argument of generate")
                yield sighting(__name__, (node, scope), text, fix=fix, severity=severity)
