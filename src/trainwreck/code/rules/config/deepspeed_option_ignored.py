"""Options of a DeepSpeed configuration that have no effect.

What: `offload_param` or `stage3_…` below stage 3, `offload_optimizer` at stage 0; an optimizer or a scheduler in the
file while the program hands its own to `deepspeed.initialize`.
Why it matters: memory that was to be saved is not, or another optimizer and schedule train than the file says.
When it is fine: where the stage is "auto" or unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.settings.bags import bags
from trainwreck.code.settings.told import told
from trainwreck.code.settings.tree import Document, Place
from trainwreck.core.evidence import Evidence, Severity

BAD = (
    """
#--- ds.json
{
  "zero_optimization": {
    "stage": 2,
    "offload_param": {"device": "cpu"}, // # expect
    "stage3_max_live_parameters": 1e9 // # expect
  },
  "train_micro_batch_size_per_gpu": 1
}
""",
    """
#--- ds.yaml
train_micro_batch_size_per_gpu: 1
zero_optimization:
  stage: 0
  offload_optimizer:  # expect
    device: cpu
""",
    """
#--- ds.json
{
  "train_micro_batch_size_per_gpu": 1,
  "zero_optimization": {"stage": 1},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}} // # expect
}
#--- train.py
import deepspeed
engine, optimizer, _, _ = deepspeed.initialize(
    model=net, optimizer=opt, lr_scheduler=schedule, config="ds.json")
""",
)
GOOD = """
#--- ds.json
{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"},
  "stage3_max_live_parameters": 1e9}, "scheduler": {"type": "WarmupLR"}}
#--- ds2.json
{"zero_optimization": {"stage": 2, "offload_param": {"device": "none"}, "offload_optimizer": {"device": "cpu"},
  "stage3_gather_16bit_weights_on_model_save": true}}
#--- train.py
import deepspeed
engine, optimizer, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config="ds.json")
"""


def find(project: Project) -> Iterator[Evidence]:
    for bag in bags(project):
        if bag.reader == "deepspeed" and bag.document is not None:
            yield from _stages(bag.document)
            yield from _handed_over(project, bag.document)


def _stages(document: Document) -> Iterator[Evidence]:
    stage = document.get("zero_optimization", "stage")
    level = stage.value if stage is not None and isinstance(stage.value, int) else None
    if stage is None or level is None or isinstance(stage.value, bool):
        return
    seen: set[str] = set()
    for keys, setting in document.settings.items():
        if len(keys) < 2 or keys[0] != "zero_optimization" or keys[1] in seen:
            continue
        name = keys[1]
        seen.add(name)
        device = document.get("zero_optimization", name, "device")
        if device is not None and device.word in ("none", ""):
            continue
        # both are written by people who switch the stage; gathering at saving is asked for in many templates
        third = name == "offload_param" or (name.startswith("stage3_") and "gather" not in name)
        if (third and level < 3) or (name == "offload_optimizer" and level < 1):
            key = document.key("zero_optimization", name)
            place = Place(document.path, key.line, key.column, key.column + len(name)) if key else setting.place
            needed = "stage 3" if third else "stage 1"
            text = f"{name} needs ZeRO {needed}, but the stage is {level}: it has no effect"
            severity: Severity = "warning" if name.startswith("offload") else "suggestion"
            yield told(__name__, place, text, proof=[stage], key=name, severity=severity)


def _handed_over(project: Project, document: Document) -> Iterator[Evidence]:
    for call in project.calls("initialize"):
        if not project.called(call).startswith("deepspeed") or not _reads(project, call, document):
            continue
        for section, argument in (("optimizer", "optimizer"), ("scheduler", "lr_scheduler")):
            given = call.argument(argument)
            key = document.key(section)
            if given is None or key is None or getattr(given, "value", ...) is None:
                continue
            place = Place(document.path, key.line, key.column, key.column + len(section))
            text = f"the {section} of this file is not used: the program hands its own to deepspeed.initialize"
            proof = [(call.scope.module.path, given.lineno, f"{argument}=…")]
            yield told(__name__, place, text, proof=proof, key=section, severity="warning")


def _reads(project: Project, call: Call, document: Document) -> bool:
    """True if the call names this file, or if there is only this one and the call names none."""
    from trainwreck.code.settings.index import of
    from trainwreck.code.values import values

    given = call.argument("config") or call.argument("config_params")
    if given is not None:
        for known in values(project, given, call.scope):
            if isinstance(known.value, str):
                return of(project).find(known.value, call.scope.module.path) == document.path
    files = [b for b in bags(project) if b.reader == "deepspeed" and b.document is not None]
    return given is None and len(files) == 1
