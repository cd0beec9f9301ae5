"""Hand-built answers: one of each kind, with everything that a report can show."""

from __future__ import annotations

import math
from dataclasses import replace

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.results import (
    Cause,
    Chart,
    Edit,
    Excerpt,
    Finding,
    Fix,
    Heat,
    Location,
    Mark,
    Missing,
    ModuleRow,
    Modules,
    Reference,
    Result,
    RunSummary,
    Suspect,
    Symptom,
)
from trainwreck.core.run import Setting

NAN = float("nan")
LOG = "runs/lm-350m/train.log"
STATE = "runs/lm-350m/trainer_state.json"


def _loss(step: float) -> float:
    if step >= 1460:
        return NAN
    base = 2.6 + 8.2 * math.exp(-step / 210) + 0.07 * math.sin(step / 7.3) + 0.05 * math.sin(step / 2.1)
    return base if step < 1240 else base + 0.9 * math.exp((step - 1240) / 105)


def _norm(step: float) -> float:
    if step >= 1460:
        return NAN
    base = 0.42 + 3.1 * math.exp(-step / 120) + 0.05 * math.sin(step / 5.7)
    return base if step < 1180 else base * math.exp((step - 1180) / 55)


STEPS = [float(s) for s in range(10, 2001, 10)]
RISE = Evidence(
    "loss-rise-before-nan",
    "direct",
    "training loss rose from 2.61 to 9.79 over the 220 steps before it became nan",
    Where("metric", path=STATE, line=1214, step=1240, metric="loss"),
    9.79,
    end=1450,
)
NORM = Evidence(
    "grad-norm-rises-before-loss",
    "direct",
    "gradient norm rose 190-fold from step 1180, 60 steps before the loss",
    Where("metric", path=STATE, line=1180, step=1180, metric="grad_norm"),
    190.0,
)
NONFINITE = Evidence(
    "loss-nonfinite",
    "direct",
    "loss is nan from step 1460 to the end",
    Where("metric", path=LOG, line=1466, step=1460, metric="loss"),
    NAN,
)
SETTING = Evidence(
    "lr-above-usual",
    "circumstantial",
    "learning rate 3e-3 is 10 times what this size is usually trained with",
    Where("config", path="configs/lm-350m.yaml", line=14, column=3, key="optim.lr"),
    3e-3,
)
ROOT = Cause(
    id="lr-too-high",
    title="Learning rate too high",
    role="root",
    group="divergence",
    severity="critical",
    confidence=0.93,
    evidence=(NORM, RISE, NONFINITE, SETTING),
    against=(),
    location=Location("configs/lm-350m.yaml", 14),
    why=(
        "Steps overshoot the region in which the gradient is a good guide; the loss grows, activations overflow, and "
        "every parameter becomes nan at the next update. Warm-up hides it until the peak rate is reached."
    ),
    fix=Fix(
        "Lower the peak learning rate 3 to 10 times, or add warm-up of 1 to 2% of the steps; restart from a checkpoint "
        "before step 1180",
        (Edit("configs/lm-350m.yaml", 14, 14, "  lr: 3.0e-4"),),
    ),
    expected_impact="No spike within 10 times the steps of this failure; gradient norm stays below 1",
    verify="Gradient norm stays under its 99th percentile of the first 500 steps",
    if_not="Look at the batch at step 1180: a lower rate that still diverges at the same step speaks for the data",
    leads_to=("nan-persisting-state",),
    experiment="Resume from step 1100 with a tenth of the learning rate: it passes step 1460 if this is the cause.",
    references=(Reference("arXiv:2309.14322", "small-scale proxies show where the loss diverges as the rate grows"),),
    tell_apart={"bad-batch": "replay the batch of step 1180 at a tenth of the rate: only here the loss stays finite"},
)
AFTER = Cause(
    id="nan-persisting-state",
    title="Optimizer state holds nan, so the run cannot recover",
    role="consequence",
    group=None,
    severity="critical",
    confidence=0.7,
    evidence=(NONFINITE,),
    against=(),
    location=None,
    why="",
    fix=Fix("Restart from an earlier checkpoint"),
    expected_impact="",
    verify="",
    if_not="",
    leads_to=(),
    experiment="",
    references=(),
)
RIVAL = Cause(
    id="bad-batch",
    title="A batch with broken values",
    role="rival",
    group="divergence",
    severity="critical",
    confidence=0.21,
    evidence=(NONFINITE,),
    against=(RISE,),
    location=None,
    why="One example holds inf or an impossible target.",
    fix=Fix("Check the batch"),
    expected_impact="",
    verify="",
    if_not="",
    leads_to=(),
    experiment="Replay the captured batch.",
    references=(),
)


def silent() -> Result:
    """A diverged run: curves, a chain, a rival, findings, suspects, symptoms, settings."""
    charts = [
        Chart(
            "loss",
            "loss",
            "step",
            "runs/lm-350m",
            STEPS,
            [_loss(s) for s in STEPS],
            [Mark(1240, RISE.text, RISE.sign), Mark(1460, NONFINITE.text, NONFINITE.sign)],
        ),
        Chart(
            "grad_norm",
            "grad-norm",
            "step",
            "runs/lm-350m",
            STEPS,
            [_norm(s) for s in STEPS],
            [Mark(1180, NORM.text, NORM.sign)],
        ),
        Chart("learning_rate", "lr", "step", "runs/lm-350m", STEPS, [min(s / 200, 1) * 3e-3 for s in STEPS]),
        Chart("eval_loss", "eval-loss", "step", "runs/lm-350m", STEPS[::20], [_loss(s) + 0.1 for s in STEPS[::20]]),
    ]
    return Result(
        status="complete",
        root_causes=(ROOT, AFTER, RIVAL),
        findings=(
            Finding(
                "missing-grad-clip",
                "code-missing-grad-clip",
                "warning",
                "no gradient clipping between backward() and step()",
                "train.py",
                88,
                9,
            ),
        ),
        symptoms=(
            Symptom(
                "throughput-drop",
                "throughput fell by 31% from step 900",
                Where("metric", path=LOG, line=902, step=900, metric="tokens/s"),
            ),
        ),
        suspects=(
            Suspect("the data is broken", "bad-batch", "refuted", (RISE,)),
            Suspect("fp16 overflow", "fp16-overflow", "undecided"),
        ),
        runs=(
            RunSummary(
                "runs/lm-350m",
                "hf-trainer",
                1,
                2000.0,
                ["eval_loss", "grad_norm", "learning_rate", "loss"],
                "completed",
            ),
        ),
        missing=(Missing("batch contents", "non-finite values in the batch would speak for bad-batch"),),
        quick_fixes=(ROOT.fix.text,),
        charts=charts,
        excerpts=(
            Excerpt(
                "configs/lm-350m.yaml",
                11,
                [
                    "optim:",
                    "  name: adamw",
                    "  betas: [0.9, 0.95]",
                    "  lr: 3.0e-3",
                    "  weight_decay: 0.1",
                    "  schedule: constant",
                    "precision: bf16",
                ],
                [14],
                "where the learning rate is set",
            ),
        ),
        chain=("lr-too-high", "nan-persisting-state"),
        settings=(
            Setting("optim.lr", 3e-3, Where("config", path="configs/lm-350m.yaml", line=14)),
            Setting("optim.betas", [0.9, 0.95], Where("config", path="configs/lm-350m.yaml", line=13)),
            Setting("precision", "bf16", Where("config", path="configs/lm-350m.yaml", line=17)),
            Setting(
                "wandb.api_key",
                "0123456789abcdef0123456789abcdef01234567",
                Where("config", path="configs/lm-350m.yaml", line=20),
            ),
        ),
        read=(STATE, LOG, "configs/lm-350m.yaml", "train.py"),
        observed=("config", "code", "console", "eval-loss", "grad-norm", "loss", "lr", "metrics"),
    )


def crash() -> Result:
    """A crash with a place in the code and no metrics."""
    seen = Evidence(
        "target-out-of-bounds-error",
        "direct",
        "label 10 is outside the classes of the model",
        Where("log", path="crash.log", line=31),
        {"index": 10},
    )
    code = Evidence(
        "user-frame",
        "direct",
        "it surfaced in training_step",
        Where("code", path="src/train.py", line=42, column=16),
        None,
    )
    cause = Cause(
        id="label-out-of-range",
        title="A class label lies outside the valid range",
        role="root",
        group="bad-index",
        severity="critical",
        confidence=0.97,
        evidence=(seen, code),
        against=(),
        location=Location("src/train.py", 42),
        why="The loss indexes the logits by the label. A label equal to the number of classes has no logit.",
        fix=Fix("Map the labels to 0..num_classes-1, or set num_labels to the largest label plus one"),
        expected_impact="The first step passes; the first loss is near ln(num_classes)",
        verify="assert 0 <= labels.min() and labels.max() < model.config.num_labels",
        if_not="If the labels are in range, look at padding that is not masked",
        leads_to=(),
        experiment="",
        references=(Reference("pytorch CrossEntropyLoss", "targets are class indices in [0, C)"),),
    )
    lines = [
        "def training_step(model, batch):",
        "    logits = model(batch['x'])",
        "    loss = F.cross_entropy(logits, batch['y'])",
        "    return loss",
    ]
    return Result(
        root_causes=(cause,),
        excerpts=(Excerpt("src/train.py", 40, lines, [42], "where it surfaced"),),
        chain=("label-out-of-range",),
        quick_fixes=(cause.fix.text,),
        read=("crash.log", "src/train.py"),
        observed=("code", "console", "traceback"),
    )


def healthy() -> Result:
    """Nothing wrong."""
    values = [2.3 * math.exp(-s / 600) + 0.2 for s in STEPS]
    return Result(
        status="nothing_found",
        runs=(RunSummary("runs/ok", "hf-trainer", 1, 2000.0, ["loss", "learning_rate"], "completed"),),
        charts=(Chart("loss", "loss", "step", "runs/ok", STEPS, values),),
        read=("runs/ok/trainer_state.json",),
        observed=("loss", "lr", "metrics"),
    )


def partial() -> Result:
    """One input could not be read, low confidence, several candidates."""
    from dataclasses import replace

    result = silent()
    weak = replace(ROOT, confidence=0.48)
    return replace(
        result,
        status="partial",
        root_causes=(weak, AFTER, RIVAL),
        unreadable=("runs/lm-350m/events.out: truncated record at byte 4096; copy the file again",),
        findings=(
            *result.findings,
            Finding(
                "unreadable",
                "unreadable",
                "suggestion",
                "runs/lm-350m/events.out: truncated",
                "runs/lm-350m/events.out",
                1,
            ),
        ),
    )


def recorded() -> Result:
    """A recording with what is known by module: 40 modules, one of which breaks."""
    names = [f"Net.blocks.{n}.attention.out_proj" for n in range(40)]
    rows = [(name, [10.0 ** (n - s) for s in range(12)]) for n, name in enumerate(names)]
    rows[7] = (names[7], [1.0] * 11 + ["nan"])
    heats = [Heat("grad_norm", "Gradient norm", 1.0, 240.0, rows)]
    heats += [Heat("output", "Largest output", 2.0, 240.0, [(n, [0.0, None, 3.0]) for n in names])]
    table = [
        ModuleRow(name, 0.1, 1e-3, 4.0, "nan" if n == 7 else 2.0, 0.5, 3 if n == 7 else 0)
        for n, name in enumerate(names)
    ]
    memory = [("after forward", 900.0 * 2**20, 800.0 * 2**20), ("after backward", 7e8, 7e8)]
    return replace(silent(), modules=[Modules("rec/rank0.twr", 0, heats, table, memory)])
