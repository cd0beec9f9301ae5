"""Every way in which errors are printed becomes the same failures with the same frames."""

from __future__ import annotations

import textwrap

from trainwreck.core.failure import Failure
from trainwreck.core.source import from_bytes
from trainwreck.failures.witness import read

PLAIN = """\
Traceback (most recent call last):
  File "/home/me/proj/train.py", line 88, in <module>
    main()
  File "/home/me/proj/train.py", line 40, in main
    loss = model(x, y).sum()
           ^^^^^^^^^^^
  File "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl
    return forward_call(*args, **kwargs)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 768x10)
"""


def failures(text: str) -> list[Failure]:
    found, _ = read(from_bytes("train.log", text.encode()), [])
    return found


def only(text: str) -> Failure:
    found = failures(text)
    assert len(found) == 1, [(f.type, f.message[:60]) for f in found]
    return found[0]


def check(failure: Failure) -> None:
    assert failure.type == "RuntimeError"
    assert failure.message == "mat1 and mat2 shapes cannot be multiplied (4x512 and 768x10)"
    assert [(f.path.rsplit("/", 1)[-1], f.line, f.user) for f in failure.frames] == [
        ("train.py", 88, True),
        ("train.py", 40, True),
        ("module.py", 1501, False),
    ]
    assert failure.frames[1].text == "loss = model(x, y).sum()"
    surfaced = failure.surfaced
    assert surfaced is not None
    assert surfaced.line == 40


def prefixed(prefix: str) -> str:
    return "".join(prefix + line + "\n" for line in PLAIN.splitlines())


def test_plain_traceback() -> None:
    failure = only("epoch 1 loss 2.3\n" + PLAIN)
    check(failure)
    assert failure.frames[1].marked == "model(x, y)"
    assert (failure.line, failure.end_line) == (2, 10)
    assert failure.fatal
    assert failure.context[-1] == "epoch 1 loss 2.3"


def test_prefixes_are_taken_off() -> None:
    for prefix in (
        "[rank3]: ",
        "2024-05-01 12:00:01,123 ",
        "2024-05-01T12:00:01.123456789Z stderr F ",
        "(RayTrainWorker pid=1234, ip=10.0.0.3) ",
        "[1,2]<stderr>:",
        "[default2]:",
        "worker-0  | ",
        "2024-05-01 12:00:01 ERROR    ",
        "[2024-05-01 12:00:01,123] [ERROR] ",
        "ERROR:root:",
        "> ",
        "    ",
        "\t",
        "wandb: ERROR ",
    ):
        check(only(prefixed(prefix)))


def test_rank_and_worker_are_kept() -> None:
    assert only(prefixed("[rank3]: ")).rank == 3
    assert only(prefixed("[default2]:")).rank == 2


def test_interleaved_ranks_are_told_apart() -> None:
    one = [f"[rank0]: {line}" for line in PLAIN.splitlines()]
    two = [f"[rank1]: {line}" for line in PLAIN.splitlines()]
    mixed = [line for pair in zip(one, two, strict=True) for line in pair]
    found = failures("\n".join(mixed) + "\n")
    assert [f.rank for f in found] == [0, 1]
    for failure in found:
        check(failure)


def test_markdown_fence_and_colours() -> None:
    check(only("```\n" + PLAIN + "```\nplease help\n"))
    check(only(PLAIN.replace("RuntimeError", "\x1b[31mRuntimeError\x1b[0m")))


def test_windows_line_ends_and_overwritten_bars() -> None:
    check(only(PLAIN.replace("\n", "\r\n")))
    bar = "\r".join(f"{n}%|##   | {n}/100 [00:01<00:02, 3.1it/s]" for n in range(50))
    check(only(bar + "\n" + PLAIN))


def test_fragment_without_header() -> None:
    check(only("".join(PLAIN.splitlines(keepends=True)[1:])))


def test_message_of_several_lines_ends_at_the_next_log_line() -> None:
    text = PLAIN.rstrip("\n") + "\n\tMissing key(s): a, b\n2024-05-01 10:00:00 INFO shutting down\nmore\n"
    assert only(text).message.endswith("\n\tMissing key(s): a, b")


def test_chained_exceptions() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    d["x"]\nKeyError: \'x\'\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in g\n    raise V("no x")\nValueError: no x\n'
    )
    failure = only(text)
    assert failure.type == "ValueError"
    assert failure.root.type == "KeyError"
    direct = text.replace(
        "During handling of the above exception, another exception occurred",
        "The above exception was the direct cause of the following exception",
    )
    assert only(direct).root.type == "KeyError"


def test_dataloader_worker_passes_its_error_on() -> None:
    text = textwrap.dedent("""\
        Traceback (most recent call last):
          File "train.py", line 10, in <module>
            for batch in loader:
          File "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py", line 633, in __next__
            data = self._next_data()
        ValueError: Caught ValueError in DataLoader worker process 3.
        Original Traceback (most recent call last):
          File "/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py", line 302, in _worker_loop
            data = fetcher.fetch(index)
          File "data.py", line 22, in __getitem__
            return int(row["label"])
        ValueError: invalid literal for int() with base 10: 'cat'
        """)
    failure = only(text)
    assert failure.worker == 3
    assert failure.message.startswith("Caught ValueError in DataLoader worker process 3.")
    assert "invalid literal" not in failure.message
    assert failure.root.message.startswith("invalid literal")
    surfaced = failure.surfaced
    assert surfaced is not None
    assert (surfaced.path, surfaced.line) == ("data.py", 22)


def test_multiprocessing_remote_traceback() -> None:
    text = textwrap.dedent('''\
        multiprocessing.pool.RemoteTraceback:
        """
        Traceback (most recent call last):
          File "/usr/lib/python3.10/multiprocessing/pool.py", line 125, in worker
            result = (True, func(*args, **kwds))
          File "prep.py", line 7, in work
            return 1 / n
        ZeroDivisionError: division by zero
        """

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "prep.py", line 12, in <module>
            pool.map(work, [0])
        ZeroDivisionError: division by zero
        ''')
    failure = only(text)
    assert failure.root.frames[-1].line == 7
    assert failure.frames[-1].line == 12


def test_ray_task_error() -> None:
    text = textwrap.dedent("""\
        Traceback (most recent call last):
          File "tune.py", line 30, in <module>
            ray.get(ref)
        ray.exceptions.RayTaskError(ValueError): \x1b[36mray::train()\x1b[39m (pid=71, ip=10.1.1.2)
          File "tune.py", line 12, in train
            raise ValueError("bad shape")
        ValueError: bad shape
        """)
    failure = only(text)
    assert failure.type == "ray.exceptions.RayTaskError(ValueError)"
    assert failure.root.type == "ValueError"
    assert failure.root.frames[-1].line == 12


def test_exception_group() -> None:
    text = textwrap.dedent("""\
          + Exception Group Traceback (most recent call last):
          |   File "a.py", line 9, in <module>
          |     asyncio.run(main())
          | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
          +-+---------------- 1 ----------------
            | Traceback (most recent call last):
            |   File "a.py", line 4, in work
            |     int("x")
            | ValueError: invalid literal for int() with base 10: 'x'
            +------------------------------------
        """)
    found = failures(text)
    assert any(f.root.type == "ValueError" and f.root.frames[-1].line == 4 for f in found)


def test_syntax_error_form() -> None:
    text = '  File "train.py", line 7\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'
    failure = only(text)
    assert failure.type == "SyntaxError"
    assert (failure.frames[-1].path, failure.frames[-1].line) == ("train.py", 7)


def test_notebook_tracebacks_old_and_new() -> None:
    old = textwrap.dedent("""\
        ---------------------------------------------------------------------------
        RuntimeError                              Traceback (most recent call last)
        <ipython-input-5-0123456789ab> in <module>
             10 for x, y in loader:
        ---> 11     loss.backward()
             12     opt.step()

        /usr/local/lib/python3.7/dist-packages/torch/tensor.py in backward(self, gradient)
            195         \"\"\"
        --> 196         torch.autograd.backward(self, gradient)

        RuntimeError: Trying to backward through the graph a second time
        """)
    failure = only(old)
    assert failure.message.startswith("Trying to backward")
    surfaced = failure.surfaced
    assert surfaced is not None
    assert (surfaced.line, surfaced.text) == (11, "loss.backward()")
    new = textwrap.dedent("""\
        ValueError                                Traceback (most recent call last)
        Cell In[5], line 3
              1 a = 1
              2 b = 2
        ----> 3 f(a, b)

        File ~/proj/util.py:20, in f(a, b)
             19 def f(a, b):
        ---> 20     raise ValueError("no")

        ValueError: no
        """)
    failure = only(new)
    assert [f.line for f in failure.frames] == [3, 20]


def test_torchrun_summary_names_the_first_rank() -> None:
    text = textwrap.dedent("""\
        Traceback (most recent call last):
          File "/opt/bin/torchrun", line 8, in <module>
            sys.exit(main())
        torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
        ============================================================
        train.py FAILED
        ------------------------------------------------------------
        Failures:
        [1]:
          time      : 2024-05-01_10:00:03
          host      : node1
          rank      : 1 (local_rank: 1)
          exitcode  : 1 (pid: 4242)
          error_file: <N/A>
        ------------------------------------------------------------
        Root Cause (first observed failure):
        [0]:
          time      : 2024-05-01_10:00:01
          host      : node1
          rank      : 3 (local_rank: 3)
          exitcode  : -9 (pid: 4241)
          error_file: <N/A>
          traceback : Signal 9 (SIGKILL) received by PID 4241
        ============================================================
        """)
    failure = next(f for f in failures(text) if f.type.endswith("ChildFailedError"))
    assert failure.values["rank"] == 3
    assert failure.values["exitcode"] == -9
    assert failure.values["signal"] == 9


def test_native_reports() -> None:
    lines = {
        "Segmentation fault (core dumped)": "SegmentationFault",
        "train.sh: line 3: 41 Killed                  python train.py": "Killed",
        "terminate called after throwing an instance of 'c10::Error'": "Terminate",
        "[12.3] Out of memory: Killed process 77 (python) total-vm:1kB": "KernelOutOfMemory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.": "KernelOutOfMemory",
        "../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [1,0,0], thread: [0,0,0] "
        "Assertion `srcIndex < srcSelectDimSize` failed.": "DeviceAssert",
        "Fatal Python error: Bus error": "BusError",
    }
    for line, kind in lines.items():
        assert [f.type for f in failures("step 3 loss 1.0\n" + line + "\n")] == [kind], line


def test_faulthandler_dump_reads_the_innermost_frame_first() -> None:
    text = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f1 (most recent call first):\n"
        '  File "lib.py", line 5 in inner\n  File "main.py", line 2 in <module>\n\n'
    )
    dumps = [f for f in failures(text) if f.frames]
    assert dumps
    assert [f.line for f in dumps[0].frames] == [2, 5]


def test_warning_keeps_its_place_and_is_not_fatal() -> None:
    text = "/home/me/prep.py:33: RuntimeWarning: invalid value encountered in divide\n  x = a / s\nepoch 0\n"
    failure = only(text)
    assert failure.type == "RuntimeWarning"
    assert not failure.fatal
    assert (failure.frames[0].line, failure.frames[0].text) == (33, "x = a / s")


def test_run_that_goes_on_makes_it_not_fatal() -> None:
    after = "".join(f"step {n} loss {2 - n / 100:.3f}\n" for n in range(20))
    assert not only("step 0 loss 2.0\n" + PLAIN + after).fatal
    assert only("step 0 loss 2.0\nstep 1 loss 1.9\n" + PLAIN).fatal


def test_ignored_exception_is_not_fatal() -> None:
    text = "Exception ignored in: <function Loader.__del__ at 0x7f>\n" + PLAIN
    assert not only(text).fatal


def test_json_log_line_with_escaped_traceback() -> None:
    line = '{"level": "error", "exc_info": "' + PLAIN.replace('"', '\\"').replace("\n", "\\n") + '"}\n'
    assert only(line).frames[1].line == 40


def test_pytest_style() -> None:
    text = "    def test_x():\n>       f()\nE       ValueError: no\n\ntests/test_x.py:12: ValueError\n"
    failure = only(text)
    assert failure.frames[0].line == 12
