"""Code of a repository is run without saying which version.

What: ``trust_remote_code=True`` with the id of a repository on the hub and no ``revision`` that is a commit.
Why it matters: whoever can push to the repository runs code here at the next start; and it may change under a run.
When it is fine: for a local directory, or with ``revision="<commit>"``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import complete, only, option
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("somebody/model-7b", trust_remote_code=True)  # expect
""",
    """
from transformers import AutoTokenizer
NAME = "org/tokenizer"
def load():
    return AutoTokenizer.from_pretrained(NAME, revision="main", trust_remote_code=True)  # expect
""",
    """
from transformers import AutoModel, pipeline
options = dict(trust_remote_code=True, device_map="cuda")
net = AutoModel.from_pretrained("org/vision-model", **options)  # expect
""",
)
GOOD = """
from transformers import AutoModel, AutoTokenizer
a = AutoModel.from_pretrained("org/model", trust_remote_code=True, revision="0123456789abcdef0123456789abcdef01234567")
b = AutoModel.from_pretrained("org/model")
c = AutoModel.from_pretrained("./model", trust_remote_code=True)
def load(path, flag):
    one = AutoTokenizer.from_pretrained(path, trust_remote_code=True)
    return one, AutoModel.from_pretrained("a/b", trust_remote_code=flag)
"""
REPOSITORY = pattern(r"^[\w.-]+/[\w.-]+$")
COMMIT = pattern(r"^[0-9a-f]{7,40}$")


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("from_pretrained"):
        if only(project, option(project, call, "trust_remote_code")) is not True or not complete(project, call):
            continue
        name = only(project, option(project, call, "pretrained_model_name_or_path", 0))
        revision = only(project, option(project, call, "revision"))
        fixed = revision is ... or (isinstance(revision, str) and COMMIT.match(revision))
        if isinstance(name, str) and REPOSITORY.match(name) and not name.startswith(".") and not fixed:
            text = f"code of {name} runs here, whatever stands there at the time: no commit is named"
            yield sighting(__name__, call, text)
