"""YAML beside a run: values with their lines, nothing constructed, nothing blown up."""

from __future__ import annotations

import pytest
from tests.runs.helpers import one, read


def test_values_and_lines() -> None:
    text = "lr: 0.001\nepochs: 3\noptimizer:\n  name: adamw\n  betas: [0.9, 0.95]\namp: true\nseed: null\nwarm: .nan\n"
    run = one("args.yaml", text)
    found = {key: setting.value for key, setting in run.settings.items() if key != "warm"}
    assert found == {
        "lr": 0.001, "epochs": 3, "optimizer.name": "adamw", "optimizer.betas": [0.9, 0.95], "amp": True, "seed": None,
    }  # fmt: skip
    assert run.settings["optimizer.betas"].where.line == 5


def test_tags_are_ignored() -> None:
    text = "lr: 0.1\nbatch_size: 4\nhook: !!python/object/apply:os.system ['touch /tmp/never']\n"
    text += "model: !!python/object:a.B\n  dim: 3\n"
    run = one("hparams.yaml", text)
    assert run.settings["model.dim"].value == 3


def test_wandb_wraps_its_values() -> None:
    text = "_wandb:\n  value:\n    cli_version: 0.31.0\nlr:\n  value: 0.01\nbatch_size:\n  desc: null\n  value: 8\n"
    run = one("files/config.yaml", text)
    assert {key: setting.value for key, setting in run.settings.items() if "_wandb" not in key} == {
        "lr": 0.01,
        "batch_size": 8,
    }


def test_a_billion_laughs() -> None:
    lines = ["lr: 0.1", "epochs: 2", "a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert one("config.yaml", "\n".join(lines)).settings["lr"].value == 0.1


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 50_000, "a: " + "- " * 50_000, "".join(" " * i + f"k{i}:\n" for i in range(400))]
)
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested too deeply|no valid YAML"):
        read("deep.yaml", text)


@pytest.mark.parametrize(
    "text", ["version: 3\nservices:\n  web: {image: nginx}\n", "name: env\ndependencies: [numpy]\n", "- a\n- b\n"]
)
def test_other_yaml_is_no_training(text: str) -> None:
    assert read("compose.yaml", text) == []
