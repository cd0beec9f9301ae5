"""An adapter is frozen: loaded for inference, frozen after it was put in, or missed by the names that are unfrozen.

What: ``PeftModel.from_pretrained`` without ``is_trainable=True``, or a configuration with ``inference_mode=True``; a
hand-made adapter that is put into the network before all of its parameters are frozen, with nothing that unfreezes
it; a filter over parameter names (``if "lora" in name``) that no attribute of the program fits.
Why it matters: no parameter needs a gradient; ``backward()`` fails or nothing is learned.
When it is fine: for inference.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.facts import source, trains
from trainwreck.code.order import position
from trainwreck.code.phases import ADAPTER, Event, covers, events
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.adapters import frozen as _frozen
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import keyword_place, modules
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

SURFACES = (r"does not require grad and does not have a grad_fn", r"optimizer got an empty parameter list")
ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
BAD = (
    """
from peft import PeftModel
def main(base, path, loader):
    model = PeftModel.from_pretrained(base, path)  # expect
    for ids in loader:
        model(ids).loss.backward()  # fails
""",
    """
import torch
from torch import nn
class LowRank(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(r, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, r))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
def inject(model, names, r):
    for n in names:
        setattr(model, n, LowRank(getattr(model, n), r))
    return model
def main(loader, ce):
    model = Net()
    model = inject(model, ["fc1"], r=4)
    for p in model.parameters():
        p.requires_grad = False  # expect
    model.head.requires_grad_(True)
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for x, y in loader:
        ce(model(x), y).backward()
        opt.step()
""",
    """
import torch
from torch import nn
class LoRALinear(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base, self.a, self.b = base, nn.Linear(4, r, bias=False), nn.Linear(r, 4, bias=False)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.head = LoRALinear(nn.Linear(4, 4), 2), nn.Linear(4, 2)
def main(loader, ce):
    net = Net()
    for name, p in net.named_parameters():
        p.requires_grad = "lora" in name or "head" in name  # expect
    opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-3)
    for x, y in loader:
        ce(net(x), y).backward()
        opt.step()
""",
)
GOOD = (
    """
from peft import PeftModel
def main(base, path, loader):
    model = PeftModel.from_pretrained(base, path, is_trainable=True)
    for ids in loader:
        model(ids).loss.backward()  # fails
""",
    """
import torch
from torch import nn
class LoRALinear(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.lora_a, self.lora_b = nn.Linear(4, r, bias=False), nn.Linear(r, 4, bias=False)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
def add_lora(net):
    for name, child in net.named_children():
        if isinstance(child, nn.Linear):
            setattr(net, name, LoRALinear(child, 4))
def main(loader, ce):
    net = Net()
    for p in net.parameters():
        p.requires_grad = False
    add_lora(net)
    other = Net()
    add_lora(other)
    for name, p in other.named_parameters():
        p.requires_grad = "lora_" in name
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-3)
    for x, y in loader:
        ce(net(x), y).backward()
        opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), _frozen)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project):
        return
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        done = events(project, scope)
        yield from _frozen_after(done)
        yield from _missed(project, done)


def _frozen_after(done: list[Event]) -> Iterator[Evidence]:
    """Everything is frozen after the adapters went in, and nothing that may be an adapter is unfrozen."""
    for event in done:
        if event.kind != "freeze" or event.test:
            continue
        before = [e for e in done if position(e.node) < position(event.node)]
        later = [e for e in done if position(e.node) > position(event.node)]
        added = [e for e in before if e.kind == "add" and e.base == event.base and ADAPTER.search(e.name)]
        thawed = any(
            e.kind == "thaw" and (e.test or covers(e.base, event.base) or ADAPTER.search(e.base)) for e in later
        )
        if added and not thawed and not any(e.kind == "add" for e in later):
            text = f"{event.base} is frozen here, after the adapters were put in: they do not learn"
            proof = [
                (added[-1].scope.module.path, int(getattr(added[-1].node, "lineno", 1)), "the adapters are put in")
            ]
            yield sighting(__name__, (event.node, event.scope), text, proof=proof)


def _missed(project: Project, done: list[Event]) -> Iterator[Evidence]:
    """The names that are unfrozen fit no attribute, while there are classes of adapters."""
    if not any(ADAPTER.search(c.name) for c in modules(project)) or "peft" in source(project):
        return
    if "adapters: attribute names" not in project.memo:
        project.memo["adapters: attribute names"] = _attribute_names(project)
    names: set[str] = project.memo["adapters: attribute names"]
    for event in done:
        if event.kind != "thaw" or not event.test or "not in" in event.test or "not (" in event.test:
            continue
        wanted = [w for w in re.findall(r"'([^']+)' in \w+", event.test) if ADAPTER.search(w)]
        for word in wanted:
            if not any(word.strip("._") in n for n in names):
                text = f"no parameter of the program has {word!r} in its name: the adapters stay frozen"
                yield sighting(__name__, (event.node, event.scope), text)
                break


def _attribute_names(project: Project) -> set[str]:
    """Every name that a parameter or a module may have: attributes, names in ``setattr`` and tables of modules."""
    found = {name for owner in project.classes for name in owner.attributes}
    for call in project.calls("setattr", "register_parameter", "add_module", "register_module"):
        text = call.node.args[1] if len(call.node.args) > 2 else call.node.args[0] if call.node.args else None
        found |= (
            {n.value for n in ast.walk(text) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            if text
            else set()
        )
    for call in project.calls("ModuleDict", "ParameterDict", "OrderedDict"):
        found |= {n.value for n in ast.walk(call.node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    for scope in project.scopes:
        found |= {name.split(".", 1)[1] for name in scope.bindings if "." in name}
    return found


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from locate(project, surface)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("from_pretrained"):
        if "Peft" in project.called(call) and not is_true(call.argument("is_trainable")) and not call.open_ended:
            yield guess(__name__, call, "the adapter is loaded for inference: is_trainable is not set")
            return
    for call in project.calls("LoraConfig", "PromptTuningConfig", "IA3Config", "PrefixTuningConfig"):
        place = keyword_place(call, "inference_mode")
        if place is not None and is_true(call.argument("inference_mode")):
            yield guess(__name__, place, "the adapter is configured for inference")
            return
