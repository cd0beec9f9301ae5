"""A model that is split over all GPUs in every process.

What: ``from_pretrained(device_map="auto")`` (or "balanced", "sequential"), and the model is wrapped in
DistributedDataParallel, or a launch script starts several processes of this program.
Why it matters: every process spreads its copy over all GPUs: memory is used up several times, or construction raises.
When it is fine: in one process, or with ``device_map={"": local_rank}``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.aliases import calls_to
from trainwreck.code.beside import texts
from trainwreck.code.calls import Call
from trainwreck.code.facts import is_torch, made, only, option
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from transformers import AutoModelForCausalLM
from torch.nn.parallel import DistributedDataParallel as DDP
def main(rank):
    model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")  # expect
    model = DDP(model)
""",
    """
import torch, transformers
torch.distributed.init_process_group("nccl")
options = dict(torch_dtype="auto", device_map="balanced")
net = transformers.AutoModel.from_pretrained("gpt2", **options)  # expect
net = torch.nn.parallel.DistributedDataParallel(net)
""",
    """
import torch.distributed as dist
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
PLACES = "auto"
dist.init_process_group("nccl")
model = AutoModelForCausalLM.from_pretrained("gpt2", device_map=PLACES)  # expect
Trainer(model, TrainingArguments("out")).train()
""",
)
GOOD = """
import torch
from accelerate import PartialState
from transformers import AutoModelForCausalLM
from torch.nn.parallel import DistributedDataParallel as DDP
def main(rank):
    model = DDP(AutoModelForCausalLM.from_pretrained("gpt2", device_map={"": rank}))
def other():
    return AutoModelForCausalLM.from_pretrained("gpt2", device_map="cuda")
def third():
    return AutoModelForCausalLM.from_pretrained("gpt2", device_map={"": PartialState().process_index})
"""
SPLITS = ("auto", "balanced", "balanced_low_0", "sequential")
LAUNCH = pattern(
    r"(torchrun|torch\.distributed\.(?:run|launch))[^\n]*?--nproc[-_]per[-_]node[= ](?P<n>\d+|gpu|auto)"
    r"|accelerate\s+launch[^\n]*?--num_processes[= ](?P<m>\d+)"
)


def find(project: Project) -> Iterator[Evidence]:
    loads = [c for c in project.calls("from_pretrained") if only(project, option(project, c, "device_map")) in SPLITS]
    if not loads:
        return
    wrapped = [c for c in calls_to(project, "torch", "DistributedDataParallel") if c.node.args]
    groups = [c for c in project.calls("init_process_group") if is_torch(project, c)]
    for load in loads:
        wrap = next((w for w in wrapped if _holds(project, w, load)), None)
        train = groups and any(True for _ in project.calls("train", "backward"))
        launch = _launched(project, load)
        if wrap is not None or (train and groups) or launch is not None:
            proof = wrap or launch or groups[0]
            yield sighting(__name__, load, "each process spreads this model over all GPUs", proof=[proof])


def _holds(project: Project, wrap: Call, load: Call) -> bool:
    return any(c.node is load.node for c in made(project, wrap.node.args[0], wrap.scope))


def _launched(project: Project, load: Call) -> tuple[str, int, str] | None:
    """The line of a launch script that starts the file of ``load`` in several processes."""
    name = load.scope.module.path.rsplit("/", 1)[-1]
    if not any(True for _ in project.calls("train", "backward")):
        return None
    for path, text in texts(project, ("shell",)):
        for number, line in enumerate(text.replace("\\\n", " \v").split("\n"), 1):
            found = LAUNCH.search(line)
            if found is None or name not in line:
                continue
            count = found["n"] or found["m"]
            if count in ("gpu", "auto") or (count.isdigit() and int(count) > 1):
                return path, number, line.strip()[:80]
    return None
