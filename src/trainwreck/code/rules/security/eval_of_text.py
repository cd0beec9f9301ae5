"""Text from outside is run as code.

What: ``eval`` or ``exec`` of a command-line argument, of what a model wrote (a decoded generation), or of a request.
Why it matters: whoever writes the text runs code in the training process, with its tokens and data.
When it is fine: for constants, and ``ast.literal_eval``; a sandbox for programs that a model wrote.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--layers", default="[64, 64]")
args = parser.parse_args()
layers = eval(args.layers)  # expect
""",
    """
def reward(tokenizer, model, ids):
    answers = tokenizer.batch_decode(model.generate(ids))
    scores = []
    for text in answers:
        scores.append(float(eval(text)))  # expect
    return scores
""",
    """
import sys
exec(sys.argv[1])  # expect
""",
)
GOOD = """
import ast
def main(args, model, kind):
    a = ast.literal_eval(args.layers)
    model.eval()
    b = eval("1 + 1")
    cls = eval(kind)
    return a, b, cls
"""
OUTSIDE = pattern(r"^(args|opt|opts|options|FLAGS)\.\w+$|^sys\.argv|^request(s)?\.")
MODEL = frozenset(["batch_decode", "decode"])


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("eval", "exec"):
        if not isinstance(call.node.func, ast.Name) or not call.node.args:
            continue
        for step in back(project, call.node.args[0], call.scope):
            text = written(step.node)
            made = isinstance(step.node, ast.Call) and last_name(step.node.func) in MODEL and "token" in text
            if step.depth > 6:
                break
            if made or OUTSIDE.match(text):
                what = "what the model wrote" if made else text[:60]
                yield sighting(__name__, Call(call.node, call.scope), f"{what} is run as code")
                break
