"""A number in YAML that PyYAML reads as text.

What: `lr: 1e-4` (no point in it) in a file that the program loads with PyYAML and uses as a number.
Why it matters: YAML 1.1 wants `1.0e-4`; PyYAML gives the text "1e-4", and the optimizer or a comparison fails on it, or
a string is multiplied.
When it is fine: with OmegaConf, ruamel.yaml or a parser that converts, and where the program calls `float`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import source
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.settings.index import of
from trainwreck.code.settings.loads import Read, loads, use_of
from trainwreck.code.settings.told import replaced, told
from trainwreck.code.settings.tree import Document, Setting
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- conf.yaml
optimizer:
  lr: 1e-4  # expect
  weight_decay: 0.01
#--- train.py
import yaml
with open("conf.yaml") as stream:
    cfg = yaml.safe_load(stream)
opt = torch.optim.AdamW(net.parameters(), lr=cfg["optimizer"]["lr"], weight_decay=cfg["optimizer"]["weight_decay"])
""",
    """
#--- configs/a.yaml
eps: 1e-8  # expect
steps: 100
#--- run.sh
python train.py --config configs/a.yaml
#--- train.py
import argparse, yaml
parser = argparse.ArgumentParser()
parser.add_argument("--config")
args = parser.parse_args()
settings = yaml.load(open(args.config), Loader=yaml.SafeLoader)
optimizer = Adam(net.parameters(), eps=settings["eps"])
""",
    """
#--- c.yaml
train: {lr: 5e-5}  # expect
#--- train.py
import yaml
config = yaml.safe_load(open("c.yaml"))
train = config["train"]
rate = train["lr"] * 2
""",
    """
#--- c.yaml
optim:
  learning_rate: 3e-4  # expect
  name: adamw
#--- train.py
import yaml
from dataclasses import dataclass
@dataclass
class Optim:
    learning_rate: float
    name: str
def load(path):
    return Optim(**yaml.safe_load(open(path))["optim"])
cfg = load("c.yaml")
optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.learning_rate)
""",
    """
#--- c.yaml
lr: 3e-4  # expect
#--- train.py
import yaml, argparse
def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--cfg", default="c.yaml")
    args = p.parse_args()
    with open(args.cfg) as f:
        for k, v in yaml.safe_load(f).items():
            setattr(args, k, v)
    return args
args = parse()
optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
""",
)
GOOD = (
    """
#--- c.yaml
lr: 3e-4
#--- train.py
import yaml
class Config:
    def __init__(self, lr):
        self.lr = float(lr)
cfg = Config(**yaml.safe_load(open("c.yaml")))
optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
""",
    """
#--- conf.yaml
lr: 1e-4
eps: 1.0e-8
name: 1e5
other: "1e-4"
#--- train.py
import yaml
cfg = yaml.safe_load(open("conf.yaml"))
opt = torch.optim.AdamW(net.parameters(), lr=float(cfg["lr"]), eps=cfg["eps"])
print(cfg["name"])
""",
    """
#--- conf.yaml
lr: 1e-4
#--- train.py
from omegaconf import OmegaConf
cfg = OmegaConf.load("conf.yaml")
opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
""",
)
NUMBERS = frozenset(
    [
        "lr",
        "eps",
        "weight_decay",
        "momentum",
        "alpha",
        "beta",
        "min_lr",
        "max_lr",
        "eta_min",
        "learning_rate",
        "gamma",
        "step_size",
        "max_norm",
        "label_smoothing",
        "dropout",
        "p",
    ]
)
"""Keywords of torch that take a number."""
_NUMBER = pattern(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+$|[-+]?\d+\.\d*[eE]\d+$")


def find(project: Project) -> Iterator[Evidence]:
    told_of: set[tuple[str, int]] = set()
    for load in loads(project):
        if load.library != "pyyaml":
            continue
        use = use_of(project, load)
        for document in load.documents:
            if document.language != "yaml":
                continue
            for read in [*use.reads, *(_elsewhere(project, document) if use.whole or use.expanded else ())]:
                setting = document.get(*read.keys)
                if setting is None or not _is_text(setting) or not _as_number(project, read):
                    continue
                if (document.path, setting.place.line) in told_of:
                    continue
                told_of.add((document.path, setting.place.line))
                new = _written(setting.text)
                text = f"PyYAML reads {setting.text} as text: YAML 1.1 wants a point and a sign in such a number"
                line = int(getattr(read.node, "lineno", 1))
                proof = [
                    (load.call.scope.module.path, load.call.line, "read with PyYAML"),
                    (read.scope.module.path, line, ast.unparse(read.node)[:80]),
                ]
                fix = replaced(of(project).text(document.path), setting.place, new, f"write {new}")
                yield told(__name__, setting, text, proof=proof, fix=fix)


def _elsewhere(project: Project, document: Document) -> Iterator[Read]:
    """Readings of the last key anywhere (``args.lr``, ``self.cfg["lr"]``) of a configuration that is handed on."""
    text = source(project)
    for keys, setting in document.settings.items():
        name = keys[-1]
        # somebody converts it: a call of float near its name, or a class that converts its fields
        if not _is_text(setting) or re.search(rf"(?:float|eval)\([^()]*\b{re.escape(name)}\b", text):
            continue
        if re.search(r"pydantic|BaseModel|attrs|__post_init__|OmegaConf|set_defaults|isinstance\([^)]*str", text):
            continue
        for scope in project.scopes:
            for node in project.within(scope, ast.Attribute, ast.Subscript):
                if isinstance(node, ast.Attribute):
                    named = node.attr == name and isinstance(node.ctx, ast.Load)
                else:
                    assert isinstance(node, ast.Subscript)
                    named = isinstance(node.slice, ast.Constant) and node.slice.value == name
                if named and isinstance(node, ast.expr):
                    yield Read(keys, node, scope, False)


def _is_text(setting: Setting) -> bool:
    return isinstance(setting.value, str) and not setting.quoted and bool(_NUMBER.match(setting.text))


def _written(text: str) -> str:
    """The number as YAML 1.1 reads it: with a point and the sign of its exponent."""
    mantissa, _, exponent = text.lower().partition("e")
    exponent = exponent if exponent[:1] in "+-" else f"+{exponent}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"


def _as_number(project: Project, read: Read) -> bool:
    """True where the value goes into arithmetic, a comparison or a call that is no conversion and no output."""
    above = project.parent(read.node, read.scope)
    if isinstance(above, ast.BinOp) and not isinstance(above.op, ast.Mod):
        return True
    if isinstance(above, ast.Compare):
        return any(isinstance(op, ast.Lt | ast.Gt | ast.LtE | ast.GtE) for op in above.ops)
    if isinstance(above, ast.keyword):
        return above.arg in NUMBERS
    if isinstance(above, ast.Call) and read.node in above.args:
        return last_name(above.func) in ("Adam", "AdamW", "SGD", "clip_grad_norm_", "range", "Dropout")
    return False
