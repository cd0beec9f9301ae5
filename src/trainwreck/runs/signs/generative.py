"""Autoencoders, quantisers and adversarial training."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import Curve, View, seen, show

FAMILY = "generative"
USAGE = 0.1
"""thresholds.tsv: codebook utilisation below 10% is a collapse (seed)."""
ONE_CODE = 2.0
"""A perplexity below two means that fewer than two codes are in use on average (definition)."""
DOMINATES = 10.0
"""thresholds.tsv: commitment over reconstruction above 10, sustained (judgement)."""
WON = 0.02
"""Cross entropy of a discriminator that makes practically no mistake; at equilibrium it is 2 ln 2 (derivation)."""
FLAT_KL = 1e-3
"""Nats: a latent that carries less is ignored (a judgement; posterior collapse shows values near 0)."""
IMBALANCE = 100.0
"""thresholds.tsv: one component above 100 times another (seed)."""


_AUXILIARY = re.compile(r"aux|balanc|regular|l[12]_|weight_decay|z_?loss|kl", re.IGNORECASE)
_BARE_TERM = r"^(train[/_ ])?(reg|cls|rec|recon|bce|ce|mse|seg|box|obj|pose|depth)$"


def find(view: View) -> Iterator[Evidence]:
    """Codebooks, discriminators, KL terms, and the balance of loss terms."""
    yield from _codebook(view)
    yield from _adversaries(view)
    yield from _latent(view)
    yield from _balance(view)
    if view.is_diffusion and view.loss is not None and view.loss.n >= 10:
        loss = view.loss
        if abs(loss.level(0.3, 0.6) - loss.level(0.7, 1.0)) < 0.1 * abs(loss.median):
            text = f"{loss.name} is flat after its first fall, as a denoising loss is while samples still improve"
            yield seen("diffusion-loss-uninformative", text, loss.where(-1), cls="circumstantial")


def _codebook(view: View) -> Iterator[Evidence]:
    size = view.setting("codebook_size", "num_embeddings", "n_embed", "n_codes", "num_codes", "codebook_k")
    codes = view.all("codebook-perplexity")
    if not codes and view.named(r"vq|codebook|commit|quantiz"):
        codes = view.all("perplexity")
    for curve in codes[:1]:
        level = curve.level(0.5, 1.0)
        if curve.n >= 3 and (0 < level < ONE_CODE or (size and 0 < level < USAGE * size)):
            text = f"{curve.name} is {show(level)}" + (
                f" of {show(size)} codes" if size else ": hardly more than one code is used"
            )
            yield seen("codebook-perplexity-low", text, curve.where(-1), level)
    for curve in view.all("codebook-usage")[:1]:
        level = curve.level(0.5, 1.0)
        share = level if level <= 1.0 else level / size if size else None
        if curve.n >= 3 and share is not None and 0 <= share < USAGE:
            text = f"{curve.name} is {show(level)}: most codes are never used"
            yield seen("codebook-usage-low", text, curve.where(-1), share)
        elif curve.n >= 3 and size is None and 1 <= level <= 3:
            text = f"{curve.name} is {show(level)}"
            yield seen("codebook-usage-low", text, curve.where(-1), level, cls="circumstantial")
    for curve in view.all("dead-codes")[:1]:
        level = curve.level(0.5, 1.0)
        share = level if level <= 1.0 else level / size if size else None
        if curve.n >= 3 and share is not None and share > 1 - USAGE:
            text = f"{curve.name} is {show(level)}: most codes are dead"
            yield seen("codebook-usage-low", text, curve.where(-1), 1 - share)
    commit = view.named(r"commit|vq_?loss|(^|[/_ ])vq$|codebook_?loss|quantiz\w*_loss")
    recon = view.named(r"recon|rec_?loss|mse")
    if commit and recon and commit[0].n >= 3 and recon[0].end > 0:
        ratio = commit[0].end / recon[0].end
        if ratio > DOMINATES:
            text = f"{commit[0].name} ends {show(ratio)} times above {recon[0].name}"
            yield seen("commitment-dominates", text, commit[0].where(-1), ratio)


def _adversaries(view: View) -> Iterator[Evidence]:
    generators, judges = view.all("generator-loss"), view.all("discriminator-loss")
    if not generators or not judges:
        return
    gen, dis = generators[0], judges[0]
    if gen.n < 5 or dis.n < 5:
        return
    low = dis.level(0.5, 1.0)
    negative = bool((dis.v < 0).any() or (gen.v < 0).any())
    if not negative and 0 <= low < WON and gen.end > max(3.0, 2 * gen.start):
        text = f"{dis.name} is {show(low)} in the second half while {gen.name} grows to {show(gen.end)}"
        yield seen("discriminator-wins", text, dis.where(-1), low)
    for curve in view.named(r"(^|[/_ ])d(isc\w*)?[_ (]*(real|x\)|acc)"):
        if curve.n >= 5 and curve.level(0.5, 1.0) > 0.99 and curve.end <= 1.0001:
            text = f"{curve.name} is {show(curve.end)}: the discriminator makes no mistake"
            yield seen("discriminator-saturated", text, curve.where(-1), curve.end, cls="circumstantial")
            break
    weights = view.named(r"^(\|g\||.*(gen|^g)[_/]?(weight|param)_?norm)")
    for curve in weights[:1]:
        if curve.n >= 4 and float(curve.v.max() - curve.v.min()) <= 1e-6 * abs(curve.median):
            text = f"{curve.name} never changes ({show(curve.median)}): the generator's weights do not move"
            yield seen("generator-weights-constant", text, curve.where(0), curve.median)


def _latent(view: View) -> Iterator[Evidence]:
    if not view.is_vae or view.is_rl:
        return
    for curve in view.named(r"(^|[/_ ])kl(d|_?loss|_?div\w*|_?term)?$"):
        if (
            curve.n >= 5
            and 0 <= curve.level(0.4, 1.0) < FLAT_KL * max(1.0, curve.start)
            and curve.level(0.4, 1.0) < 0.05
        ):
            text = f"{curve.name} is {show(curve.level(0.4, 1.0))}: the latent carries no information"
            yield seen("kl-term-near-zero", text, curve.where(-1), curve.level(0.4, 1.0))
            return


def _balance(view: View) -> Iterator[Evidence]:
    """One loss term outweighs another by two orders of magnitude to the end, or a term is exactly zero."""
    if view.is_rl or view.is_gan:
        return
    terms = [c for c in view.all("loss-term") if c.n >= 3 and not _AUXILIARY.search(c.name)]
    if not terms and view.loss is not None:
        terms = [c for c in view.named(_BARE_TERM) if c.n >= 3 and c.series.role in (None, "metric")]
    alive = [c for c in terms if c.end > 0 and c.start > 0]
    if len(alive) < 2:
        return
    big, small = max(alive, key=_end), min(alive, key=_end)
    if big.end / small.end > IMBALANCE and big.start / small.start > 0.1 * IMBALANCE and small.end > 0.2 * small.start:
        text = f"{big.name} ({show(big.end)}) outweighs {small.name} ({show(small.end)}), which does not fall"
        yield seen("loss-term-outweighs", text, big.where(-1), big.end / small.end)


def _end(curve: Curve) -> float:
    return curve.end
