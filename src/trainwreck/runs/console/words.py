"""The words by which console lines are understood: data, no mechanism."""

from __future__ import annotations

import re

N = "\0"
"""Stands for a number in the skeleton of a line (NUL bytes never survive reading)."""

STEP_KEYS: tuple[str, ...] = (
    "global_step",
    "global step",
    "globalstep",
    "training/global_step",
    "num_updates",
    "update_num",
    "total_timesteps",
    "num_timesteps",
    "time/total_timesteps",
    "timesteps_total",
    "total timesteps",
    "timesteps",
    "timestep",
    "total_steps_done",
    "env_steps",
    "env_step",
    "total_env_steps",
    "current_step",
    "current_steps",
    "training step",
    "train step",
    "train_step",
    "optimizer_step",
    "opt_step",
    "step",
    "steps",
    "iteration",
    "iterations",
    "training_iteration",
    "iter_num",
    "iter",
    "iters",
    "itr",
    "it",
    "update",
    "updates",
    "nupdates",
    "n_updates",
    "episode",
    "episodes",
    "eps_num",
    "batch",
    "minibatch",
    "batch_idx",
    "batch_idx",
    "mb",
    "i",
    "s",
    "t",
    "idx",
    "ba",
)
"""Names of a step, the more global first."""

EPOCH_KEYS: tuple[str, ...] = (
    "epoch",
    "ep",
    "epoch_num",
    "current_epoch",
    "trainer/epoch",
    "round",
    "generation",
    "cycle",
    "boosting round",
)

ENV_STEP_KEYS = frozenset(
    {
        "total_timesteps",
        "num_timesteps",
        "time/total_timesteps",
        "timesteps_total",
        "total timesteps",
        "timesteps",
        "timestep",
        "env_steps",
        "env_step",
        "total_env_steps",
    }
)

JUNK_KEYS = frozenset(
    {
        "line",
        "pid",
        "port",
        "cuda",
        "eta",
        "rank",
        "device",
        "seed",
        "node",
        "v_num",
        "id",
        "job",
        "gpu",
        "gpus",
        "version",
    }
    | {
        "lineno",
        "time_ms",
        "file",
        "shard",
        "worker",
        "workers",
        "local_rank",
        "world_size",
        "date",
        "elapsed",
        "remaining",
    }
    | {"est", "ip", "errno", "http", "status", "torch.size", "shape", "range", "len", "print", "format", "int", "using"}
    | {"see", "host", "slot", "uptime", "timestamp", "cudaerror", "python", "torch", "wrote", "loaded", "repeated"}
)
"""Keys that are no metric although a number follows."""

WEAK_JUNK_KEYS = frozenset(
    {
        "total",
        "fold",
        "trial",
        "attempt",
        "x",
        "y",
        "size",
        "code",
        "error",
        "patience",
        "counter",
        "warning",
        "cpu",
        "saved",
        "rate",
    }
    | {"last", "next", "first", "took", "pr", "issue", "round"}
)
"""Keys that are a metric only where a separator says so (``total=1.2``)."""

TRAIN_WORDS = r"train(?:ing)?|trn|train_inner"
EVAL_WORDS = r"val|valid|validation|eval|evaluation|evaluating|dev|devel"
TEST_WORDS = r"test|testing"
PHASE = re.compile(
    rf"(?<![\w/])(?:(?P<train>{TRAIN_WORDS})|(?P<val>{EVAL_WORDS})|(?P<test>{TEST_WORDS}))(?![\w/]|\s+(?:every|s"
    rf"et of|samples|images))",
    re.IGNORECASE,
)
HAS_PHASE = re.compile(rf"(?<![a-z])(?:{TRAIN_WORDS}|{EVAL_WORDS}|{TEST_WORDS}|hel|tel|trl)(?![a-z])", re.IGNORECASE)

EVALUATED = re.compile(rf"(?:{EVAL_WORDS}|{TEST_WORDS})(?![a-z])", re.IGNORECASE)

METRIC = re.compile(
    r"loss|(?<![a-z])(?:acc|accuracy|err|error|top-?[15]|auc|auroc|f1|precision|recall|iou|miou|map|ap|dice|psnr"
    r"|ssim|fid|bleu|rouge|wer|cer"
    r"|per|mse|mae|rmse|mape|nll|elbo|bce|ce|ppl|perplexity|bpc|bpb|bpd|kl|kld|recon|rec|lr|reward|return|rew|en"
    r"tropy|gnorm|norm|grad"
    r"|logps|logits|margin|margins|score|r2|corr|pearson|spearman|metric|cost|loss_scale|scale|codebook|commit|v"
    r"q|energy|hel|tel|trl"
    r"|critic|actor|value|policy|advantage|ratio|clip|adv|pg|td|q|mfu|tps|throughput|fid|is|cos|contrastive|gap|"
    r"std)(?![a-z])"
    r"|learning[ _]rate|損失|损失|准确率",
    re.IGNORECASE,
)
"""A key that is taken for a metric even where no step stands in its line."""

DICT = re.compile(r"^\W{0,3}\{|\|\s*\{|\]\s*\{|:\s*\{|\s\{['\"]")
"""A dictionary printed in one piece, not one line of a configuration file."""
SUMMARY = re.compile(
    r"(?<![\w])(?:final|finally|finished|finish|done|end|ended|summary|results?|completed?|overall|best|train_ru"
    r"ntime)(?![\w])",
    re.IGNORECASE,
)
"""Words that open a closing line: its values are ends, no points of a curve."""

ASIDE = re.compile(
    r"\b(?:sav(?:ed|ing)|resum\w+|load(?:ed|ing)|restor\w+|checkpoint\w*|best|improved|download\w*|wrote|writing"
    r"|early|expected|got|shape|warning"
    r"|error|estimated)\b",
    re.IGNORECASE,
)
"""Words of lines that tell something beside the curve; their numbers are not mixed into it."""

UNIT = re.compile(
    r"(?:\s?(?P<scale>%)|(?P<big>[kKM])(?=[\s,;|)\]}/]|$)|(?:ms|us|s|sec|secs|min|h|x|db|dB|GB|GiB|MB|MiB|KB|kB|"
    r"B|G|Mb|Gb|it/s|s/it)"
    r"|\s(?:ms|us|sec|secs|seconds|dB|GB|GiB|MB|MiB|KB|kB|it/s|s/it|samples/s\w*|tok\w*/s\w*|steps/s\w*|img/s\w*"
    r"|images/s\w*|TFLOPS))?"
    r"(?=[\s,;|)\]}'\"><(:/*+&~…\\-]|\.(?:\s|$)|$)",
)
"""What may follow a value: a percent sign (divided by 100), a multiplier, or a unit that is kept as written."""

WRAP = re.compile(
    r"(?:(?:torch\.|jnp\.|np\.|numpy\.|jax\.|paddle\.|tf\.)?(?:[tT]ensor|[Aa]rray|float\d*|int\d*|Array|bfloat16"
    r"|Decimal|EagerTensor)"
    r"\((?:shape=\(\),\s*dtype=\w+,\s*numpy=)?\[{0,2}\s*|[\"'\[]\s*|\$|£|<tf\.Tensor[^>]{0,60}numpy=)+$"
)
SEPARATOR = re.compile(r"(?:(?P<explicit>\s*(?:=>|->|→|[:=≈~])\s*\|?\s*)|(?P<word>\s+(?:is|was)\s+)|(?P<space>\s+|^))$")
SEGMENT = re.compile(
    r"[,;|{}\t\n•·►]|\s[-–—]\s|\s{2,}|[:=]\s|\]\s*|(?<!\w)[\"']|[\"'](?!s\b)|(?<=\))\s+(?=[^\s(])|>\s|\.\s|\s/\s|=+>"
)
KEY = re.compile(r"[^\W\d_][\w' \-./@%()\[\]^*+#&:<>²~°|]*$|\|\w+\|$|_\w+$|λ|η|β|α|γ|%[\w ]+$")

SETTING_KEYS = re.compile(
    r"(?:^|[_. /-])(?:lr|learning[ _]rate|batch(?:[ _]size)?|bs|epochs?|steps|warm-?up\w*|weight[ _]decay|wd|mom"
    r"entum|beta[12s]?|eps(?:ilon)?"
    r"|optim(?:izer)?|schedul\w*|dropout|vocab\w*|vocabulary|classes|num[ _]classes|num[ _]labels|labels|n[ _]cl"
    r"asses|seq\w*|length|max\w*"
    r"|layers?|heads?|dim|hidden\w*|width|depth|fp16|bf16|amp|precision|dtype|grad\w*|accum\w*|clip\w*|seed|para"
    r"m\w*|trainable|characters|tokens"
    r"|samples|examples|images|uniform[ _]loss|chance|baseline|gamma|tau|temperature|alpha|rank|world[ _]size|gp"
    r"us?|devices?|loss[ _]scale|zero\w*)"
    r"(?:$|[_. /-])",
    re.IGNORECASE,
)
"""Keys of settings that are kept even when they stand alone, outside a block of settings."""

COUNTED = (
    "parameters|params|trainable parameters|trainable params|classes|samples|examples|tokens|characters|images|l"
    "ayers|labels|features|"
    "batches|steps per epoch|gpus|processes|train samples|training samples|validation samples|val samples|test samples"
)
CODE = re.compile(
    r"^\s*(?:import\s+\w|from\s+[\w.]+\s+import\b|(?:async\s+)?def\s+\w+\s*\(|class\s+\w+.*:\s*$|@\w|if\s.+:\s*("
    r"?:#.*)?$|elif\s.+:\s*$|else\s*:\s*$"
    r"|for\s+.+\s+in\s+.+:|while\s.+:\s*$|with\s.+:\s*$|try\s*:\s*$|except\b.*:|finally\s*:|return\b|raise\s+\w|"
    r"assert\s|yield\b|pass\s*$|#|//|\"\"\"|'''"
    r"|print\(|\w+\.\w[\w.]*\([^)]*\)\s*$|[\w.\[\]'\"]+\s*(?:[-+*/%@|&]|//|\*\*)?=\s*[\w.\"'\[\]]+\(|.*\bf[\"']."
    r"*\{.+\}|.*\{[\w.]+:[.<>\d]*[a-z%]?\}"
    r"|lambda\b|[+]{1,4} |\s*[\w.]+\s*=\s*(?:self|torch|np|nn|F|args|cfg|config)\.|.*[({\[]\s*$|export\s+\w+=|#S"
    r"BATCH|#BSUB)"
)
"""A line of source text (Python, or a traced shell script)."""

HINTS = (
    "loss",
    "acc",
    "epoch",
    "step",
    "iter",
    "lr",
    "rate",
    "norm",
    "err",
    "score",
    "f1",
    "map",
    "reward",
    "kl",
    "ppl",
    "perplex",
    "mse",
    "mae",
    "update",
    "batch",
    "nll",
    "metric",
    "eval",
    "val",
    "train",
    "test",
    "episode",
    "entropy",
    "%||",
    "it [",
    "recon",
    "auc",
    "trl",
    "tel",
    "hel",
    "{'",
    '{"',
    "r2",
    "dice",
    "iou",
    "损失",
    "class",
    "vocab",
    "it ",
)
"""A line without any of these (in lower case) that does not open with a number is not looked at for metrics."""
LIKELY_ENDS = (
    "loss",
    "acc",
    "accuracy",
    "lr",
    "rate",
    "norm",
    "reward",
    "return",
    "ppl",
    "perplexity",
    "kl",
    "mse",
    "mae",
    "nll",
    "score",
    "f1",
    "auc",
    "map",
    "entropy",
    "trl",
    "tel",
    "epoch",
    "step",
    "iter",
    "iteration",
    "update",
    "batch",
    "%||",
    "_loss'",
    "loss'",
    "step'",
    "epoch'",
)
"""What stands before a metric or a step, for texts in which most lines are something else."""
SIDE_BARS = (
    "map",
    "load",
    "download",
    "fetch",
    "token",
    "filter",
    "generat",
    "cast",
    "extract",
    "process",
    "shard",
    "read",
    "writ",
    "cach",
    "prepar",
    "build",
    "pack",
    "group",
    "sav",
    "creat",
    "converting",
    "resolving",
    "saving",
    "embedding",
    "import",
)
"""Progress bars that are not of the training begin with these words."""
