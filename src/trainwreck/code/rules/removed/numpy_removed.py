"""Names that NumPy removed.

What: `np.float`, `np.int`, `np.NaN`, `np.product` and others.
Why it matters: an AttributeError at the first use.
When it is fine: where the project pins a release that still has it, or a branch tests the release.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.torch_changes import told
from trainwreck.core.evidence import Evidence

BAD = """
import numpy as np
x = np.zeros(3, dtype=np.float)  # expect
y = np.where(x > 0, x, np.NaN)  # expect
"""
GOOD = """
import numpy as np
x = np.zeros(3, dtype=np.float64)
y = np.where(x > 0, np.inf, np.nan)
z = x.astype(bool) | np.zeros(3, dtype=np.bool)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__, "numpy-removed")
