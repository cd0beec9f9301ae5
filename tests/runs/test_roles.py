"""One table for the metric names of all frameworks."""

from __future__ import annotations

import pytest

from trainwreck.runs.roles import in_context, lower_is_better, role_of

NAMES = {
    "loss": "loss, train_loss, Train Loss, lm loss, total_loss, train/loss, train_loss_step, "
    "train_loss_epoch, mean_loss, "
    "epoch_loss, Loss/train, trainLoss, avg_loss, training_loss, train.loss, nll_loss, cross_entropy",
    "eval-loss": "eval_loss, eval/loss, val_loss, validation loss, loss/val, valLoss, test_loss, "
    "eval_wiki_loss, dev_loss, "
    "val_loss_epoch, lm-loss-validation/lm loss validation",
    "eval-loss-term": "val/box_loss, val/cls_loss, val/dfl_loss",
    "loss-term": "train/box_loss, loss_cls, loss_box_reg, recon_loss, loss_q0, vb, commitment_loss, vq_loss, aux_loss",
    "grad-norm": "grad_norm, train/grad_norm, gnorm, grad norm, global_grad_norm, grad_2.0_norm_total, actor/grad_norm",
    "lr": "lr, learning_rate, learning rate, lr/pg0, x/lr0, lr-AdamW, lr-Adam/pg1, optim0_lr0, charts/learning_rate",
    "loss-scale": "loss scale, loss_scale",
    "skipped": "number of skipped iterations",
    "nan-count": "number of nan iterations",
    "weight-norm": "params norm, param_norm",
    "reward": "reward, rollout/ep_rew_mean, charts/episodic_return, mean 100 episode reward, "
    "critic/score/mean, EpRewMean, "
    "critic/rewards/mean, Reward/train, objective/rlhf_reward, env_runners/episode_return_mean, AverageEpRet",
    "eval-reward": "eval/mean_reward",
    "reward-term": "rewards/format_reward, rewards/accuracy_reward/mean",
    "reward-term-std": "rewards/accuracy_reward/std",
    "reward-std": "reward_std",
    "zero-spread": "frac_reward_zero_std",
    "reward-margin": "rewards/margins",
    "reward-accuracy": "rewards/accuracies",
    "neg-entropy": "train/entropy_loss",
    "entropy": "entropy, actor/entropy, objective/entropy, actor/entropy_loss",
    "kl": "kl, train/approx_kl, objective/kl, actor/ppo_kl, kl_loss, policy/approxkl_avg",
    "policy-loss": "train/policy_gradient_loss, actor/pg_loss, losses/policy_loss, train/actor_loss",
    "value-loss": "train/value_loss, critic/vf_loss, train/critic_loss, qf1_loss, losses/td_loss",
    "explained-variance": "train/explained_variance",
    "clip-fraction": "train/clip_fraction, clip_ratio/region_mean, actor/pg_clipfrac",
    "length-clipped": "completions/clipped_ratio, response_length/clip_ratio",
    "length": "completion_length, completions/mean_length, response_length/mean",
    "episode-length": "rollout/ep_len_mean",
    "action-std": "train/std",
    "coefficient": "train/clip_range, train/ent_coef, beta",
    "metric": "accuracy, train_acc, mean_token_accuracy, wer, mean_squared_error, fast_rcnn/cls_accuracy",
    "eval-metric": "val_accuracy, eval_top1, metrics/mAP50-95(B), metrics/mAP_0.5:0.95, bbox/AP, bbox_mAP, eval_rouge1",
    "perplexity": "ppl, train_perplexity_step",
    "eval-perplexity": "val_perplexity",
    "codebook-usage": "codebook_usage",
    "discriminator-loss": "d_loss, loss_D, errD",
    "generator-loss": "g_loss, Loss_G",
    "throughput": "time/fps, train_samples_per_second, tokens_per_second_per_gpu",
    "step-time": "elapsed time per iteration (ms)",
    "epoch": "epoch",
    "progress": "step, global_step, consumed samples, time/total_timesteps",
}


@pytest.mark.parametrize(("role", "name"), [(r, n.strip()) for r, names in NAMES.items() for n in names.split(",")])
def test_names_of_all_frameworks(role: str, name: str) -> None:
    assert role_of(name) == role


@pytest.mark.parametrize("name", ["sepal_length", "price", "best_val_acc", "user_id", "x" * 500, "", "eta_seconds"])
def test_other_names_have_no_role(name: str) -> None:
    assert role_of(name) is None


def test_errors_improve_by_falling() -> None:
    assert lower_is_better("eval_wer")
    assert lower_is_better("val_loss")
    assert lower_is_better("mean_squared_error")
    assert not lower_is_better("val_accuracy")
    assert not lower_is_better("metrics/mAP50(B)")


def test_the_total_loss_of_a_policy_is_no_learning_signal() -> None:
    assert in_context(["train/loss", "rollout/ep_rew_mean", "train/value_loss"])["train/loss"] == "rl-loss"
    assert in_context(["loss", "rewards/chosen", "rewards/margins"])["loss"] == "loss"


def test_perplexity_beside_a_codebook_is_its_own() -> None:
    assert in_context(["loss", "vq_loss", "perplexity"])["perplexity"] == "codebook-perplexity"
    assert in_context(["loss", "perplexity"])["perplexity"] == "perplexity"


def test_a_lone_component_is_the_loss() -> None:
    assert in_context(["epoch", "recon_loss"])["recon_loss"] == "loss"
    assert in_context(["recon_loss", "kl_loss", "aux_loss"])["recon_loss"] == "loss-term"


@pytest.mark.parametrize("name", ["persistence_rmse", "val/naive_mae", "test_majority_accuracy", "baseline/mse"])
def test_a_yardstick_does_not_learn(name: str) -> None:
    assert role_of(name) is None
    assert role_of("baseline_loss") == "value-loss"
