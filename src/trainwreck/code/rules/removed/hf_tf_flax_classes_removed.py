"""Models for TensorFlow and Flax are gone.

What: classes with the prefix TF or Flax imported from transformers.
Why it matters: the import raises an ImportError in transformers 5.
When it is fine: where the project pins a release that still has it; in branches that test the release; in
classes of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import told
from trainwreck.code.project import Project
from trainwreck.core.evidence import Evidence

BAD = """
from transformers import AutoTokenizer, TFAutoModelForSequenceClassification  # expect
from transformers import FlaxBertModel  # expect
"""
GOOD = """
from transformers import AutoTokenizer, AutoModelForSequenceClassification, is_torch_available
if is_tf_available():
    from transformers import TFBertModel
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__)
