"""Errors that are no Python exceptions: C++ terminations, device assertions, signals, lines of kernel and scheduler."""

from __future__ import annotations

import re
from typing import Any

DUMP_HEADER = re.compile(r"Fatal Python error: |^(?:Current t|T)hread 0x[0-9a-f]+ .{0,60}\(most recent call first\):")

_NATIVE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "DeviceAssert",
        re.compile(
            r"(?:[\w./\\-]+\.(?:cu|cuh|cpp|c|h|hip))(?::|\()\d+\)?:.{0,400}[Aa]ssertion `?(?P<m>.{1,300}?)['`]? failed"
        ),
    ),
    (
        "Terminate",
        re.compile(
            r"terminate called (?:after throwing an instance of|without an active exception|recursively)(?P<m>.*)"
        ),
    ),
    ("Terminate", re.compile(r"^\s*what\(\):\s*(?P<m>.*)")),
    ("FatalPythonError", re.compile(r"Fatal Python error: (?P<m>.*)")),
    (
        "SegmentationFault",
        re.compile(
            r"(?P<m>[Ss]egmentation [Ff]ault.{0,80}|SIGSEGV.{0,80}|exit(?:ed with)? (?:code|status):? ?-?(?:11|139)\b)"
        ),
    ),
    ("BusError", re.compile(r"(?P<m>\b[Bb]us error.{0,80}|SIGBUS.{0,80})")),
    ("Aborted", re.compile(r"^(?P<m>Aborted(?: \(core dumped\))?|.*\bSIGABRT\b.{0,80})$")),
    ("IllegalInstruction", re.compile(r"(?P<m>[Ii]llegal instruction.{0,60}|SIGILL.{0,60})")),
    (
        "KernelOutOfMemory",
        re.compile(
            r"(?P<m>Out of memory: Kill(?:ed)? process.*|oom-kill.*|oom_kill event.*|oom_reaper.*|"
            r"OOMKilled.*|Memory cgroup out of memory.*|Exceeded job memory limit.*)"
        ),
    ),
    (
        "Killed",
        re.compile(
            r"(?P<m>^(?:.{0,120}: line \d+: +\d+ +)?Killed\b.{0,160}$|\bSIGKILL\b.{0,100}|"
            r"exit(?:ed with)?[ _]?(?:code|status)[: =]{1,3}(?:-9|137)\b.*|\bsignal 9\b.*|return code(?: =|:)? -9\b)"
        ),
    ),
    (
        "Terminated",
        re.compile(
            r"(?P<m>^Terminated$|\bSIGTERM\b.{0,120}|exit(?:ed with)?[ _]?(?:code|status)[: =]{1,3}(?:-15|143)\b.*)"
        ),
    ),
    (
        "JobTimeLimit",
        re.compile(
            r"(?P<m>CANCELLED AT .* DUE TO TIME LIMIT.*|DUE TO TIME LIMIT.*|TERM_RUNLIMIT.*|walltime .{0,40}exceeded.*)"
        ),
    ),
    (
        "CollectiveTimeout",
        re.compile(
            r"(?P<m>(?:Watchdog caught collective operation timeout|Some NCCL operations have failed or timed out).*)"
        ),
    ),
    ("CxxFrame", re.compile(r"^frame #\d+: (?P<m>.*)")),
)
"""Type given to a native report, and the pattern whose group ``m`` is its message."""

HINTS = (
    "ssertion",
    "terminate called",
    "what():",
    "Fatal Python",
    "egmentation ",
    "SIG",
    "us error",
    "Aborted",
    "llegal instruction",
    "Out of memory",
    "oom",
    "OOM",
    "Exceeded job memory",
    "Killed",
    "signal 9",
    "exit",
    "return code",
    "Terminated",
    "TIME LIMIT",
    "TERM_RUNLIMIT",
    "walltime",
    "Watchdog caught",
    "Some NCCL",
    "frame #",
    "thread 0x",
    "Thread 0x",
)


def failure(text: str) -> tuple[str, str] | None:
    """Type and message of the native report in ``text``, None where there is none."""
    if not any(hint in text for hint in HINTS):
        return None
    for name, pattern in _NATIVE:
        found = pattern.search(text)
        if found:
            if name == "CxxFrame":
                return None
            return name, (text.strip() if name == "DeviceAssert" else found["m"].strip() or text.strip())[:2000]
    return None


def dump_name(text: str) -> str:
    """The type of a faulthandler dump by its first line."""
    if "Segmentation fault" in text:
        return "SegmentationFault"
    if "Bus error" in text:
        return "BusError"
    if "Aborted" in text:
        return "Aborted"
    return "FatalPythonError" if "Fatal Python error" in text else "ThreadDump"


_RANK = re.compile(r"\brank\s*:\s*(\d+)")
_EXIT = re.compile(r"\bexitcode\s*:\s*(-?\d+)")
_SIGNAL = re.compile(r"[Ss]ignal (\d+)")


def child_values(message: str) -> dict[str, Any]:
    """What a torchrun summary says of the first rank to fail: ``rank``, ``exitcode``, ``signal``, ``failed_ranks``."""
    root = message.rpartition("Root Cause")[2] or message
    values: dict[str, Any] = {}
    for key, pattern in (("rank", _RANK), ("exitcode", _EXIT), ("signal", _SIGNAL)):
        found = pattern.search(root)
        if found:
            values[key] = int(found[1])
    ranks = sorted({int(n) for n in _RANK.findall(message)})
    if len(ranks) > 1:
        values["failed_ranks"] = ranks
    return values
