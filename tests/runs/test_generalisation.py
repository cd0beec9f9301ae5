"""Kinds of logs that were misread once: spellings of consoles, noise that is no symptom, blow-ups at once."""

from __future__ import annotations

import numpy as np
from tests.runs.curves import causes_of, falling, noise, run_of, signs_of
from tests.runs.helpers import one

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event
from trainwreck.runs.signs import sightings

NAN = float("nan")


def test_end_of_epoch_lines_are_points_of_the_curve() -> None:
    lines = []
    for epoch in range(1, 5):
        lines += [
            f"| epoch {epoch:3d} | {b:5d}/ 900 batches | lr 5.00 | loss {6 - epoch / 9 - b / 9e3:.2f} |"
            for b in (300, 600)
        ]
        lines += ["-" * 40, f"| end of epoch {epoch:3d} | time: 35.5s | valid loss {5 - epoch / 9:.2f} |", "-" * 40]
    run = one("train.log", "\n".join(lines) + "\n")
    assert len(run.by_role("eval-loss")[0]) == 4


def test_nan_prints_within_an_epoch_are_points_of_their_own() -> None:
    lines = [
        f"| epoch {e:3d} | {b:5d}/ 900 batches | lr 20.0 | loss   nan |" for e in (1, 2) for b in range(100, 900, 100)
    ]
    assert len(one("train.log", "\n".join(lines) + "\n").by_role("loss")[0]) == 16


def test_a_table_drawn_with_bars() -> None:
    rows = [f"| {e} | {7 - e / 5:.4f} | {6.9 + e / 9:.4f} | {e}% |" for e in range(12)]
    text = "\n".join(["| Epoch | Train Loss | Val Loss | Val Acc |", "|------|------|------|------|", *rows]) + "\n"
    run = one("train.txt", text)
    assert len(run.by_role("loss")[0]) == len(run.by_role("eval-loss")[0]) == 12


def test_batches_that_begin_again_are_the_next_epoch() -> None:
    lines = [f"Batch {b}/80: Loss={2 - e / 4 - b / 400:.4f}" for e in range(4) for b in range(20, 81, 20)]
    assert len(one("train.log", "\n".join(lines) + "\n").by_role("loss")[0]) == 16


def test_a_loss_beside_rewards_is_no_measure_in_a_console_either() -> None:
    lines = [f"Episode {i} | Avg Reward: {i / 9:.3f} | Loss: {0.01 * (i % 3):.4f}" for i in range(1, 20)]
    assert one("rl.log", "\n".join(lines) + "\n").by_role("rl-loss")


def test_heavy_tails_of_batch_losses_are_no_spikes() -> None:
    tails = np.abs(noise(1200, 1.0)) ** 3
    assert "loss-spike-recovered" not in signs_of({"loss": 0.05 + 0.02 * tails})


def test_noise_of_the_steep_start_is_no_spike() -> None:
    loss = falling(160, 0.27, 0.05, 8) + noise(160, 0.004)
    loss[3] += 0.15
    assert "loss-spike-recovered" not in signs_of({"loss": loss})


def test_a_clear_spike_is_still_one() -> None:
    loss = falling(600, 2, 0.5, 60) + noise(600, 0.02)
    loss[300:303] = 4.0
    assert "loss-spike-recovered" in signs_of({"loss": loss})


def test_an_accuracy_gap_beside_a_settled_validation_loss_accuses_nobody() -> None:
    curves = {
        "loss": falling(20, 1.4, 0.1, 5), "accuracy": 1 - falling(20, 0.6, 0.02, 4),
        "val_loss": falling(20, 1.4, 0.6, 5), "val_accuracy": 1 - falling(20, 0.6, 0.24, 4),
    }  # fmt: skip
    assert "train-val-accuracy-gap" not in signs_of(curves, "epoch")
    assert not [name for name, chance in causes_of(curves, "epoch").items() if chance >= 0.12]


def test_a_run_that_blew_up_memorised_nothing() -> None:
    train = [45.0, 3.2, 2.7, *([1.62, 1.60, 1.68, 1.64] * 5)]
    curves = {"loss": train, "val_loss": [4.4, 2.4, 1.62, *(1.7 + 0.06 * np.arange(20))]}
    assert "eval-loss-rises-train-falls" not in signs_of(curves, "epoch")


def test_a_blow_up_in_the_first_points_stands_above_its_start() -> None:
    loss = np.concatenate([[1.6, 7e4, 3e4, 900.0], 5 + noise(300, 0.6)])
    found = signs_of({"loss": loss})
    assert "loss-above-start" in found
    assert not found & {"loss-scale-wrong", "loss-falls", "loss-spike-recovered"}


def test_a_loss_that_drops_to_zero_is_not_masked_labels() -> None:
    curves = {"loss": [*falling(30, 2, 1, 9), *[0.0] * 60], "grad_norm": [1.0] * 30 + [NAN] * 60}
    assert "loss-drops-to-zero" in signs_of(curves)
    assert causes_of(curves).get("labels-all-ignored", 0) < 0.7


def test_early_stopping_ends_a_run_and_accuses_nobody() -> None:
    where = Where("log", "t.log", line=40)
    curves = {"loss": falling(30, 2, 0.4, 8), "val_loss": falling(30, 2, 0.6, 8)}
    run = run_of(
        curves, "epoch", events=[Event("early-stopping", "Early stopping", where)], outcome="unfinished", planned=100
    )
    assert "truncated" not in {e.sign for e in sightings([run])}
    assert "early-stopping-triggered" in {e.sign for e in sightings([run])}
