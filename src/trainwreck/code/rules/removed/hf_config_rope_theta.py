"""Rotary settings are read where they no longer are.

What: ``config.rope_theta`` or ``config.rope_scaling`` of a configuration of transformers.
Why it matters: from transformers 5 on they are entries of ``rope_parameters``: an AttributeError.
When it is fine: with transformers below 5; behind ``hasattr``; for configurations of one's own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import made
from trainwreck.code.huggingface import loaded_by, model_loads, release
from trainwreck.code.outdated import grade, guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import scope_at
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = """
from transformers import AutoConfig, AutoModelForCausalLM
config = AutoConfig.from_pretrained("m")
print(config.rope_theta)  # expect
model = AutoModelForCausalLM.from_pretrained("m")
base = model.config.rope_theta  # expect
"""
GOOD = """
from transformers import AutoConfig, AutoModelForCausalLM
config = AutoConfig.from_pretrained("m")
print(config.rope_parameters["rope_theta"], getattr(config, "rope_theta", None))
if hasattr(config, "rope_theta"):
    print(config.rope_theta)
print(own.rope_theta)
class Rotary:
    def __init__(self, config):
        self.base = config.rope_theta
"""


def find(project: Project) -> Iterator[Evidence]:
    for path, walked in project.walked.items():
        if ".rope_theta" not in walked.top.module.text:
            continue
        since = release(project, "transformers", path, (5,))
        for node in walked.parents if since != "no" else ():
            if not isinstance(node, ast.Attribute) or node.attr != "rope_theta" or not isinstance(node.ctx, ast.Load):
                continue
            scope = scope_at(walked.top, node.lineno)
            if _configuration(project, node.value, scope) and not guarded(project, node, scope):
                text = "since transformers 5 rope_theta is an entry of rope_parameters"
                fix = Fix('config.rope_parameters["rope_theta"]')
                yield sighting(__name__, (node, scope), text, fix=fix, severity=grade(since == "yes"))


def _configuration(project: Project, node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "config":
        return loaded_by(project, node.value, scope, model_loads(project)) is not None
    makers = made(project, node, scope)
    return any(
        "Config.from_pretrained" in project.called(m) and project.from_package(m, "transformers") for m in makers
    )
