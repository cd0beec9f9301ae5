"""A notebook that runs only in another order than it is written.

What: a cell reads a name that is made in a later cell only, that was deleted above, or that no cell makes.
Why it matters: run from the top it stops there; the results that it shows came from cells that changed or are gone.
When it is fine: where a magic, a star import or another notebook brings the name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.cells import cell_of, unmet
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
# %%
import torch
# %%
loss = (model(torch.ones(1, 2))).sum()  # expect
# %%
model = torch.nn.Linear(2, 1)
""",
    """
# %%
import pandas as pd
df = pd.read_csv("a.csv")
del df
# %%
print(df.head())  # expect
""",
    """
# %%
import torch
net = torch.nn.Linear(2, 1)
# %%
opt = torch.optim.SGD(net.parameters(), lr=learning_rate)  # expect
""",
)
GOOD = (
    """
# %%
import torch
def train(model):
    return model(later)
# %%
model, later = torch.nn.Linear(2, 1), torch.ones(1, 2)
total = [x for x in range(3)]
for epoch in range(3):
    loss = train(model)
# %%
print(loss, epoch, [h + 1 for h in total])
display(loss)
""",
    """
# %%
from fastai.vision.all import *
# %%
learn = vision_learner(dls, resnet18)
""",
    """
# %%
try:
    import google.colab
    COLAB = True
except Exception:
    COLAB = False
# %%
if COLAB:
    drive = 1
with open("x") as f:
    text = f.read()
print((n := len(text)), n)
del text
""",
)
BRINGS = pattern(
    r"%run|%load |%store|%%cython|%pylab|exec\(|globals\(\)|locals\(\)|%macro|%%R\b|%%sql|%sql|%%capture \w"
)
"""Magics and calls that make names out of sight."""
STAR = pattern(r"^\s*from\s+[\w.]+\s+import\s+\*", re.MULTILINE)


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        module = walked.top.module
        if not module.cells or BRINGS.search(module.text) or STAR.search(module.text):
            continue
        if any(p.path == module.path for p in project.problems):
            continue  # a broken cell may have made the name
        deletes = any(True for _ in project.within(walked.top, ast.Delete))
        for need in list(unmet(project, walked))[:3]:
            name = need.node.id
            if need.made_later is not None:
                cell = cell_of(walked, need.made_later)
                text = f"{name} is made in cell {cell} only, below this one"
                if cell == need.cell:
                    text = f"{name} is made further down in this cell only"
            elif deletes and name in walked.top.bindings:
                text = f"{name} was deleted above, and no cell makes it again"
            else:
                text = f"no cell makes {name}: the one that did is gone"
            yield sighting(__name__, (need.node, walked.top), text)
