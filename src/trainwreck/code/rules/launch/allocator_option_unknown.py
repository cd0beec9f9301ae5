"""An option of the CUDA allocator that does not exist, or is written the wrong way.

What: `PYTORCH_CUDA_ALLOC_CONF` with a misspelt option, or with `=` or a blank instead of `:`.
Why it matters: torch refuses the variable at the first allocation ("Unrecognized … option"), or the setting that was to
prevent running out of memory is not in force.
When it is fine: options that are close to nothing known may belong to another release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.catalogue.tables import settings_table
from trainwreck.code.project import Project
from trainwreck.code.settings.accepted import close
from trainwreck.code.settings.told import told
from trainwreck.code.settings.variables import assigned
from trainwreck.core.evidence import Evidence

BAD = (
    """
#--- run.sh
export PYTORCH_CUDA_ALLOC_CONF=expandable_segment:True  # expect
python train.py
PYTORCH_ALLOC_CONF=max_split_size_mb=128 python train.py  # expect
""",
    """
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size:128,expandable_segments:True"  # expect
""",
    """
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "garbage_collection_treshold:0.8"  # expect
import torch
""",
)
GOOD = """
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128,expandable_segments:True"
os.environ["PYTORCH_ALLOC_CONF"] = "roundup_power2_divisions:[256:1,512:2,>:8],backend:cudaMallocAsync"
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = SETTING
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = ""
"""
NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


def find(project: Project) -> Iterator[Evidence]:
    known = frozenset(settings_table("environment")["allocator"])
    for item in assigned(project):
        if item.name not in NAMES or not item.text:
            continue
        for part in re.sub(r"\[[^\]]*\]", "", item.text).split(","):
            found = re.match(r"\s*([A-Za-z_]\w*)\s*(.?)", part)
            if found is None or (found[1] in known and found[2] == ":"):
                continue
            meant = found[1] if found[1] in known else close(found[1], known, 0.85)
            if found[1] in known:
                text = f"{item.name} separates option and value by a colon: {meant}:…, not {part.strip()!r}"
            elif meant:
                text = f"the allocator has no option {found[1]!r}; {meant} is meant?"
            else:
                continue
            yield told(__name__, item.place, text, fix=f"write {meant}:…", key=item.name)
            break
