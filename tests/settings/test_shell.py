"""Commands of scripts: words as bash expands them, what is unknown stays unknown, every word has its place."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwreck.code.settings.arithmetic import evaluate
from trainwreck.code.settings.launch import flags, launches
from trainwreck.code.settings.shell import HOLE, Command, commands


def words(script: str) -> list[str]:
    """The words of the last command."""
    return [a.text for a in commands("run.sh", script)[-1].args]


EXPANDED = [
    'A=1\nB="two words"\necho $A "$B" x$A-y ${A}z',
    "N=4\nM=$((N * 2 + 1))\necho $M $(( (N - 1) ** 2 )) $((7 / 2)) $((-7 % 3))",
    "X=${UNSET_NAME:-five}\necho $X ${UNSET_NAME-six}",
    'OPTS="--lr 1e-4   --bf16"\necho $OPTS',
    "ARGS=(--a 1\n  --b 'x y' # why\n)\nARGS+=(--c)\necho \"${ARGS[@]}\"",
    "A=1; A=2 && A+=3\necho $A",
    "echo one \\\n  two \\\n  three # four",
    "export P=q R=s\necho $P$R",
    "echo 'single $A' \"double \\$A\" back\\ slash",
    "cat <<EOF > /dev/null\necho inside\nEOF\necho after",
    "if true; then A=1; fi\necho end 2>&1 > /dev/null",
    "f() { A=1; }\necho end",
    'A=\necho "$A" x',
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("script", EXPANDED)
def test_words_are_those_of_bash(script: str) -> None:
    printing = "echo() { printf '%s\\n' echo \"$@\"; }\n" + script.replace("2>&1 > /dev/null", "")
    done = subprocess.run(["bash", "-c", printing], capture_output=True, text=True)
    assert words(script) == done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@given(st.lists(st.sampled_from(["1", "2", "30", "7", "+", "-", "*", "/", "%", "(", ")", " "]), min_size=1, max_size=9))
@settings(max_examples=40, deadline=None)
def test_arithmetic_is_that_of_bash(pieces: list[str]) -> None:
    text = "".join(pieces)
    mine = evaluate(text, lambda _: None)
    if mine is None or text.startswith("0"):
        return
    done = subprocess.run(["bash", "-c", f"echo $(({text}))"], capture_output=True, text=True)
    if done.returncode == 0 and done.stdout.strip():
        assert str(mine) == done.stdout.strip()


UNKNOWNS = [
    'python t.py "$1"',
    "python t.py $(date)",
    "python t.py `date`",
    "python t.py $UNSET_NAME",
    "N=1\nif x; then N=2; fi\npython t.py $N",
    "for s in 1 2; do\npython t.py $s\ndone",
    "case $x in\n a) N=1 ;;\nesac\npython t.py $N",
    "f() { N=3; }\nN=$(g)\npython t.py $N",
    "read N\npython t.py $N",
    "N=$((M * 2))\npython t.py $N",
]


@pytest.mark.parametrize("script", UNKNOWNS)
def test_what_the_script_does_not_say_is_unknown(script: str) -> None:
    python = next(c for c in commands("run.sh", script) if c.name == "python")
    assert python.args[-1].text == HOLE


def test_places_are_those_of_the_text_that_is_meant() -> None:
    script = "OPTS='--lr 1e-4'\nARGS=(--a\n  --b)\npython t.py $OPTS \"${ARGS[@]}\" --c=3\n"
    found = {a.text: a.place for a in commands("run.sh", script)[-1].args}
    assert (found["1e-4"].line, found["1e-4"].column, found["1e-4"].end_column) == (1, 12, 16)
    assert (found["--b"].line, found["--b"].column) == (3, 3)
    assert found["--c=3"].line == 4


def test_commands_in_branches_are_not_certain() -> None:
    found = commands("run.sh", "if a; then\n python x.py\nfi\npython y.py\nf() { python z.py; }\npython w.py")
    assert [c.certain for c in found if c.name == "python"] == [False, True, False, True]


def test_the_environment_at_a_command() -> None:
    def env(found: Command) -> dict[str, str]:
        return {n: v.text for n, v in found.env.items()}

    assert env(commands("run.sh", "export A=1\nB=2\nC=3 python x\n")[-1]) == {"A": "1", "C": "3"}
    last = commands("run.sh", "export A=1\nunset A\nset -a\nD=4\npython y\n")[-1]
    assert env(last) == {"D": "4"}


LAUNCHED = [
    ("python train.py --lr 1", "python", "train.py", ["lr"]),
    ("python3 -u -m pkg.train --lr 1", "python", "pkg.train", ["lr"]),
    ("CUDA_VISIBLE_DEVICES=0 nohup python -W ignore train.py --x > log 2>&1 &", "python", "train.py", ["x"]),
    ("torchrun --standalone --nproc_per_node 8 train.py --lr 1", "torchrun", "train.py", ["lr"]),
    ("python -m torch.distributed.launch --nproc_per_node=8 --use_env train.py -b 2", "torchrun", "train.py", ["b"]),
    ("accelerate launch --config_file a.yaml --multi_gpu train.py --x y", "accelerate", "train.py", ["x"]),
    ("deepspeed --include localhost:0,1 train.py --deepspeed d.json", "deepspeed", "train.py", ["deepspeed"]),
    ("srun -N 2 --ntasks=8 python train.py", "python", "train.py", []),
    ("uv run --with torch python train.py --q", "python", "train.py", ["q"]),
    ("timeout 3600 env A=1 python train.py", "python", "train.py", []),
    ("./train.py --z -1", "python", "./train.py", ["z"]),
    ("srun -N 2 bash -c 'torchrun --nproc_per_node 8 train.py --lr 1'", "torchrun", "train.py", ["lr"]),
    ('CMD="python train.py --lr 1"\neval $CMD', "python", "train.py", ["lr"]),
    ("vllm serve org/model --port 1", "vllm", "", ["port"]),
    ("python -m sglang.launch_server --model-path x", "sglang", "sglang.launch_server", ["model_path"]),
]


@pytest.mark.parametrize(("command", "launcher", "target", "names"), LAUNCHED)
def test_what_a_command_starts(command: str, launcher: str, target: str, names: list[str]) -> None:
    (found,) = launches(commands("run.sh", command))
    assert (found.launcher, found.script or found.module) == (launcher, target)
    assert [f.name for f in found.flags()] == names


@pytest.mark.parametrize(
    "command", ["ls -l", "pip install x", "accelerate config", "echo python train.py", "python -c 'x'"]
)
def test_other_commands_start_nothing_that_is_judged(command: str) -> None:
    assert not [x for x in launches(commands("run.sh", command)) if x.script or x.module]


def test_a_negative_number_is_a_value() -> None:
    args = commands("run.sh", "x --lr -1e-3 --bias -0.5 --flag --ids 1 2 3")[0].args
    assert {f.name: [v.text for v in f.values] for f in flags(args)} == {
        "lr": ["-1e-3"],
        "bias": ["-0.5"],
        "flag": [],
        "ids": ["1", "2", "3"],
    }


@given(st.text(max_size=200))
@settings(max_examples=300)
def test_no_text_makes_the_reader_raise(text: str) -> None:
    launches(commands("run.sh", text))


PIECES = [
    "if ",
    "then ",
    "fi\n",
    "for x in a; do ",
    "done\n",
    "case $1 in ",
    "esac",
    "$((",
    "))",
    "${",
    "}",
    "$(",
    ")",
    "(",
]
PIECES += [
    '"',
    "'",
    "\\",
    "\n",
    "`",
    "A=",
    "B=(",
    "<<EOF\n",
    "EOF\n",
    "export ",
    "$A",
    "${B[@]}",
    "python t.py --x ",
    ";;",
    "&& ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=500)
def test_no_program_makes_the_reader_raise(text: str) -> None:
    for found in commands("run.sh", text):
        assert all(a.place.line >= 1 and a.place.column >= 1 for a in found.args)
    launches(commands("run.sh", text))


def test_variables_that_grow_without_end_are_cut() -> None:
    script = "A=xxxxxxxxxx\n" + "A=$A$A$A$A\n" * 40 + "python t.py $A\n"
    assert all(len(a.text) <= 20_000 for c in commands("run.sh", script) for a in c.args)
