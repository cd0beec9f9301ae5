"""Words of which at least one stands in every program of a kind, so that rules of other kinds are not loaded for it.

They are looked for anywhere in the text, as parts of words and in comments too: a word too many costs a little time,
one too few costs a finding. A rule names them as its ``WORDS`` (see ``trainwreck.code.triggers``).
"""

from __future__ import annotations

REWARDS = (
    *("reward", "Reward", "polic", "Polic", "advant", "adv_", "adv ", "critic", "Critic", "Actor", "gamma", "discount"),
    *("episode", "Episode", "action", "Action", "log_prob", "logp", "Categorical", "multinomial", "bandit", "Bandit"),
    *("rollout", "terminal", "terminat", "truncat", "trajector", "agent", "Agent", "returns", "prefer", "chosen"),
    *("gym", "env", "Env", "done", "replay", "Replay", "q_net", "qnet", "QNet", "DQN", "PPO", "GRPO", "DPO", "RLOO"),
    *("transition", "obs", "bootstrap", "td_", "TD", "explor", "eps_greedy", "epsilon", "baseline", "winner", "reject"),
)
"""Learning from rewards or preferences."""

PROCESSES = (
    *("istributed", "rank", "ccelerat", "Parallel", "fsdp", "FSDP", "ddp", "DDP", "world_size", "all_reduce"),
    *("deepspeed", "Fabric", "fabric", "horovod", "ightning", "spawn", "Trainer", "strategy"),
)
"""Several processes that train one model."""

RESTORING = ("load_", "load(", "restore", "Restore", "resume", "Resume", "load,", "load ")
"""States that are read back from a file."""
