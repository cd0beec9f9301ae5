"""Outdated uses that stand a step away from the import: subclasses, methods of objects, names of inner modules."""

from __future__ import annotations

import pytest

from trainwreck.code import build, witness
from trainwreck.core.source import from_bytes


def told(code: str, pins: str = "") -> list[tuple[int, str]]:
    """(line, sign) of what is told of API that is gone, with these pins."""
    sources = [from_bytes("t.py", code.encode())]
    sources += [from_bytes("requirements.txt", pins.encode())] if pins else []
    found = witness(build(sources)).evidence
    return sorted((e.where.line or 0, e.sign.removeprefix("code-")) for e in found if e.sign in SIGNS)


SIGNS = frozenset(
    [
        "code-removed-api",
        "code-bad-kwarg",
        "code-hf-trainer-tokenizer-arg",
        "code-hf-adamw-import-removed",
        "code-hf-eval-strategy-renamed",
        "code-trl-ppo-removed",
        "code-torch-removed",
    ]
)
SUBCLASS = """from transformers import Trainer
class Base(Trainer):
    def log(self, logs, start_time=None): pass
class Mine(Base):
    pass
t = Mine(model=m, args=a, tokenizer=tok)
"""


def test_a_subclass_takes_what_its_base_takes() -> None:
    assert told(SUBCLASS) == [(6, "hf-trainer-tokenizer-arg")]
    assert told(SUBCLASS, "transformers==4.44.0\n") == []


@pytest.mark.parametrize(
    "body",
    [
        "    def __init__(self, tokenizer, **more):\n        super().__init__(**more)\n",
        "    tokenizer: object = None\n",
        "    def __new__(cls, **more): return object()\n",
    ],
)
def test_one_that_says_how_it_is_made_is_left_alone(body: str) -> None:
    assert told(SUBCLASS.replace("    pass\nt =", f"{body}t =")) == []


def test_one_with_a_mixin_or_a_decorator_is_left_alone() -> None:
    assert told(SUBCLASS.replace("class Mine(Base)", "class Mine(Base, Mixin)")) == []
    assert told(SUBCLASS.replace("class Mine", "@patched\nclass Mine")) == []


def test_methods_that_a_class_has_lost() -> None:
    code = "from trl import PPOTrainer  # line 1\nppo = PPOTrainer(c, m, r, tok)\nppo.step(q, a, s)\nppo.train()\n"
    assert (3, "trl-ppo-removed") in told(code)
    assert not {2, 4} & {line for line, _ in told(code)}
    assert told(code, "trl==0.11.4\n") == []
    again = code.replace("ppo.step", "ppo = wrap(ppo)\nppo.step")
    assert 4 not in {line for line, _ in told(again)}, "bound twice: it may be something else"


def test_keywords_of_methods() -> None:
    code = (
        "import pytorch_lightning as pl\nt = pl.Trainer()\nt.fit(net, train_dataloader=d)\nt.fit(net, d, ckpt_path=p)\n"
    )
    assert told(code) == [(3, "bad-kwarg")]


def test_methods_and_modules_older_than_the_tables() -> None:
    code = "import pytorch_lightning as pl\nfrom pytorch_lightning.metrics import F1\nt = pl.Trainer()\nt.tune(net)\n"
    assert told(code) == [(2, "removed-api"), (4, "removed-api")]
    own = "from pytorch_lightning import Trainer\nclass Mine(Trainer):\n    def tune(self, m): pass\nMine().fit(n)\n"
    assert told(own + "t = Mine()\nt.tune(n)\n") == []


def test_what_a_class_lost_before_it_moved_is_told_too() -> None:
    code = "from trl import PPOConfig\nc = PPOConfig(\n    learning_rate=1e-5,\n    log_with='wandb',\n)\n"
    lines = [line for line, _ in told(code)]
    assert 4 in lines
    assert 3 not in lines
    assert told(code, "trl==0.10.1\n") == []


def test_names_of_inner_modules() -> None:
    assert told("from transformers.optimization import AdamW, Adafactor\n") == [(1, "hf-adamw-import-removed")]
    assert told("from transformers.optimization import AdamW\n", "transformers==4.44.0\n") == []
    assert told("from transformers.trainer_utils import EvaluationStrategy\n") == [(1, "hf-eval-strategy-renamed")]
    assert told("from transformers.configuration_utils import PretrainedConfig\n") == []


def test_what_load_dataset_once_took() -> None:
    code = "from datasets import load_dataset\nd = load_dataset('x', ignore_verifications=True)\n"
    assert told(code) == [(2, "removed-api")]
    assert told(code, "datasets==2.18.0\n") == []
    assert told("from datasets import load_dataset\nd = load_dataset('x', data_dir='y', languages=['de'])\n") == []


def test_the_hub_library() -> None:
    code = "from huggingface_hub import Repository, hf_hub_download\n"
    assert told(code) == [(1, "removed-api")]
    assert told(code, "huggingface_hub==0.23.0\n") == []
