"""The events that console text tells: launchers, schedulers, signals, skipped steps, restarts, ends.

Every ``Event.kind`` that the console reader makes stands in ``EVENTS``. Kinds are sign-like and say what the line says:

===================== ============================================================== ================ ===========
kind                  the line                                                       value            outcome
===================== ============================================================== ================ ===========
time-limit            slurm DUE TO TIME LIMIT, LSF TERM_RUNLIMIT, PBS walltime                        time-limit
preempted             slurm DUE TO PREEMPTION, requeued, spot or maintenance notice                   killed
node-failure          slurm NODE FAILURE, node went down                                              killed
cancelled             slurm CANCELLED without a reason, scancel, qdel, TERM_OWNER                     cancelled
host-oom-kill         oom_kill event, kernel "Out of memory: Killed process", LSF                     killed
                      TERM_MEMLIMIT, "exceeded memory limit"
killed                "Killed", SIGKILL, exit code 137 / -9, "signal 9"              signal or code   killed
terminated            SIGTERM, exit code 143 / -15, "Terminated"                     signal or code   killed
aborted               SIGABRT, exit code 134 / -6, "core dumped"                     signal or code   crashed
segmentation-fault    SIGSEGV, exit code 139 / -11                                   signal or code   crashed
interrupted           KeyboardInterrupt, ^C, "Detected KeyboardInterrupt"                             interrupted
dist-child-failed     ChildFailedError, "exits with return code"                     code             crashed
watchdog-timeout      NCCL "Watchdog caught collective operation timeout"                             crashed
nonzero-exit          "exited with (exit) code N", "Exited with exit code N", N != 0 code             crashed
clean-exit            the same with N == 0, "Successfully completed."                0                completed
traceback             "Traceback (most recent call last):"                                            (see read)
completed             "Training completed", "train_runtime", "finished training", …                   completed
overflow-skip         DeepSpeed OVERFLOW!, fairseq gradient overflow, apex Gradient  new loss scale
                      overflow, GradScaler skip, "skipping step"
min-loss-scale        loss scale at its minimum, "Minimum loss scale reached"        loss scale
nonfinite-skip        "grad norm is nan", "loss is nan, skipping", non-finite loss told in
                      words (ESPnet, timm, detectron2, Megatron)
early-stopping        EarlyStopping triggered, "Early stopping", "patience exceeded" epoch
lr-reduced            ReduceLROnPlateau / "reducing learning rate"                   new learning rate
resumed               "resuming from", "resumed at step", "continuing from"          step, or parts
checkpoint-saved      "Saving model checkpoint", "saved at step", "Saved checkpoint" step
restart               a launcher restarts workers (elastic, torchrun, "Restarting worker")
banner                a new fold, trial, job or training script begins               number
===================== ============================================================== ================ ===========

``Event.where`` gives the line and, where one is known, the last step seen before it. ``Event.text`` is the line, cut to
``MAX_TEXT`` characters. Of one kind at most ``MAX_EVENTS`` are kept (the first half and the last half); a note of the
run says how many there were.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainwreck.core.run import Outcome

MAX_TEXT = 300
MAX_EVENTS = 400
"""Enough to see the rhythm of skipped steps; a log of a week has tens of thousands of them."""


@dataclass(frozen=True, slots=True)
class EventRule:
    """``pattern`` over a line; group 1, where there is one, is the value. ``outcome``: how a run ends that ends so."""

    kind: str
    pattern: re.Pattern[str]
    outcome: Outcome | None = None


def _rule(kind: str, pattern: str, outcome: Outcome | None = None, flags: int = 0) -> EventRule:
    return EventRule(kind, re.compile(pattern, flags), outcome)


_I = re.IGNORECASE
_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)"

EVENTS: tuple[EventRule, ...] = (
    _rule(
        "time-limit",
        r"DUE TO TIME LIMIT|TERM_RUNLIMIT|TERM_CPULIMIT|exceeded .{0,20}wall ?time|walltime .{0,30}exceeded"
        r"|job exceeded .{0,20}time limit",
        "time-limit",
    ),
    _rule(
        "preempted",
        r"DUE TO PREEMPTION|TERM_PREEMPT|(?:instance|node|job|vm|pod) (?:was |has been |is being )?preempted"
        r"|CANCELLED .{0,60}\bREQUEUE|DUE TO JOB REQUEUE|TERM_REQUEUE|spot instance (?:interruption|terminat)",
        "killed",
        _I,
    ),
    _rule("node-failure", r"DUE TO NODE FAILURE|NODE_FAIL|Node failure on|DUE TO REVOKED", "killed"),
    _rule(
        "host-oom-kill",
        r"oom[-_]kill|Out of memory: Kill(?:ed)? process|task \d+: Out Of Memory|TERM_MEMLIMIT"
        r"|OOM killer|OOMKilled|[Ee]xceeded (?:job |step )?memory limit|Memory cgroup out of memory"
        r"|Some of the step tasks have been OOM|Workers \(tasks / actors\) killed due to memory pressure",
        "killed",
    ),
    _rule(
        "cancelled",
        r"(?:slurmstepd|srun|scancel)\b.{0,80}CANCELLED|\*\*\* (?:JOB|STEP) \S+ .{0,60}CANCELLED AT"
        r"|TERM_OWNER|TERM_ADMIN|TERM_FORCE_OWNER|job (?:was )?(?:deleted|cancell?ed) by (?:user|owner)"
        r"|srun: Job step aborted",
        "cancelled",
    ),
    _rule(
        "interrupted",
        r"KeyboardInterrupt|^\^C|Detected KeyboardInterrupt|[Ii]nterrupted by (?:the )?user|SIGINT\b"
        r"|[Cc]aught Ctrl-?C|[Cc]trl-?C pressed",
        "interrupted",
    ),
    _rule("segmentation-fault", r"\bSIGSEGV\b|Segmentation fault|exit ?code:? *(?:139|-11)\b|signal 11\b", "crashed"),
    _rule(
        "aborted",
        r"\bSIGABRT\b|\bAborted\b(?: \(core dumped\))?\s*$|core dumped|exit ?code:? *(?:134|-6)\b|signal 6\b",
        "crashed",
    ),
    _rule(
        "dist-child-failed",
        r"ChildFailedError|exits with return code = ?(-?[1-9]\d*)|Root Cause \(first observed failure\)"
        r"|failed \(exitcode: (-?\d+)\)|subprocess\.CalledProcessError: Command .* returned non-zero exit status (\d+)"
        r"|ProcessRaisedException|ProcessExitedException",
        "crashed",
    ),
    _rule(
        "killed",
        r"^(?:\S+: line \d+:\s+\d+ )?Killed\b|\bSIGKILL\b|exit(?:ed)?(?: with)?(?: exit)? ?(?:code|status):?"
        r" *(137|-9)\b|signal:? 9\b|: Killed$|\bKilled \s*(?:python|srun|torchrun)",
        "killed",
    ),
    _rule(
        "terminated",
        r"\bSIGTERM\b|exit(?:ed)?(?: with)?(?: exit)? ?(?:code|status):? *(143|-15)\b|signal:? 15\b"
        r"|^Terminated\b(?! at)",
        "killed",
    ),
    _rule(
        "watchdog-timeout",
        r"Watchdog caught collective operation timeout|[Cc]ollective operation timed? ?out"
        r"|NCCL watchdog thread terminated|Monitored barrier.{0,40}time",
        "crashed",
    ),
    _rule(
        "nonzero-exit",
        r"[Ee]xit(?:ed)?(?: with)?(?: exit)? (?:code|status):? *(-?[1-9]\d*)\b"
        r"|returned (?:a )?non-zero (?:exit )?(?:code|status)?:? ?(\d*)|Job .{0,80} in cluster .{0,40} Exited\s*$"
        r"|exitcode *: *(-?[1-9]\d*)|exit_code=(-?[1-9]\d*)",
        "crashed",
    ),
    _rule(
        "clean-exit",
        r"^Successfully completed\.|[Ee]xit(?:ed)?(?: with)?(?: exit)? (?:code|status):? *(0)\b"
        r"|Job .{0,80} in cluster .{0,40} Done\s*$",
        "completed",
    ),
    _rule(
        "min-loss-scale",
        r"loss scale already at minimum|Minimum loss scale reached|loss scale .{0,30}(?:below|minimum)"
        r"|Grad(?:ient)? overflow.{0,40}minimum",
        None,
    ),
    _rule(
        "overflow-skip",
        r"OVERFLOW!.{0,120}?[Rr]educing (?:loss scale |scale )?to ?" + _NUMBER + r"|OVERFLOW!"
        r"|gradient overflow(?: detected)?.{0,80}?(?:loss scale (?:to|is)?:?|reducing loss scale to) ?"
        + _NUMBER
        + r"|gradient overflow|overflow detected.{0,40}skip|skipp(?:ing|ed) (?:this )?(?:optimizer )?step.{0,40}"
        r"overflow"
        r"|found_inf.{0,30}skip|Skipping step, loss scaler \d+ reducing loss scale to " + _NUMBER,
        None,
        _I,
    ),
    _rule(
        "nonfinite-skip",
        r"grad(?:ient)?(?:[ _]norm)? is (?:nan|inf)|(?:loss|gradients?)\b[^.|]{0,30}\b(?:is|are|was|became)"
        r" (?:now )?(?:nan|inf\b|infinite|non-?finite|not finite)|(?:nan|inf|non-?finite)[ _](?:loss|grad\w*)"
        r"[^.|]{0,40}(?:skip|detect|found|encounter|at )|(?:nan|inf|non-?finite) (?:detected|encountered|found) in"
        r"|skipp\w+ [^.|]{0,40}\b(?:nan|non-?finite)|rank \d+: found NaN in",
        None,
        _I,
    ),
    _rule(
        "early-stopping",
        r"early[ _-]?stopp(?:ing|ed)\b(?!\s*[=:(._]|[ _]?(?:patience|rounds|callback|threshold|counter))"
        r"|epoch \d+: early stopping|patience (?:of \d+ )?(?:exceeded|exhausted|reached)"
        r"|did not improve (?:in|for) the last \d+|Stopping training early",
        None,
        _I,
    ),
    _rule("lr-reduced", r"reduc(?:ing|ed) (?:the )?(?:learning rate|lr)(?:.{0,40}? to " + _NUMBER + ")?", None, _I),
    _rule(
        "resumed",
        r"\bresum(?:ed|ing)\b(?! (?:False|None)).{0,60}?(?:(?:step|iteration|epoch|iter)\D{0,3}(\d+))?\s*$"
        r"|\bresum(?:ed|ing) (?:training |run )?(?:at|from)\b.{0,80}?(?:(?:step|iteration|epoch)\D{0,3}(\d+))?"
        r"|\bcontinuing (?:training )?from (?!scratch)(?:\w+ ){0,3}(?:checkpoint|global step|epoch|saved|step)\w"
        r"*(?: (\d+))?|[Ww]ill skip the first \d+ epochs"
        r"|successfully loaded checkpoint from .{0,200}? at iteration (\d+)|[Rr]estor(?:ed|ing) (?:all )?(?:stat"
        r"es )?from (?:the )?"
        r"checkpoint|Loaded checkpoint .{0,120}?(?:(?:step|iteration|epoch|updates)\D{0,3}(\d+))",
        None,
        _I,
    ),
    _rule(
        "checkpoint-saved",
        r"Saving (?:model )?checkpoint|Saved (?:model |best |)?(?:checkpoint|model)|saved at step (\d+)"
        r"|successfully saved checkpoint at iteration\s+(\d+)|checkpoint saved",
        None,
        _I,
    ),
    _rule(
        "restart",
        r"[Rr]estarting worker|restart(?:ing|s) (?:the )?(?:worker group|training)|Worker group .{0,20} FAILED"
        r"|attempts left; will restart",
        None,
    ),
    _rule(
        "completed",
        r"train_runtime|[Tt]raining (?:is |has |was )?(?:complete|completed|finished|done|ended)\b(?!:? ?\d+ ?%)"
        r"|[Ff]inished [Tt]raining|[Cc]ompleted [Tt]raining|[Dd]one [Tt]raining|[Tt]raining [Cc]omplete|max_step"
        r"s`?=\d+` reached"
        r"|max_epochs=\d+` reached|\[after training is done\]|^\s*(?:all )?done[.!]*\s*$|epochs completed in"
        r"|done training in",
        "completed",
    ),
    _rule("traceback", r"Traceback \(most recent call last\)", None),
)

_GUARD = (
    "term_",
    "cancel",
    "oom",
    "preempt",
    "node_fail",
    "node failure",
    "requeue",
    "kill",
    "sig",
    "exit",
    "abort",
    "segment",
    "core d",
    "memory",
    "interrupt",
    "^c",
    "trl-c",
    "childfailed",
    "root cause",
    "calledprocess",
    "processraised",
    "watchdog",
    "timed out",
    "timeout",
    "barrier",
    "loss scale",
    "overflow",
    "finite",
    "nan",
    "inf",
    "early",
    "patience",
    "improve",
    "reduc",
    "resum",
    "continuing",
    "skip",
    "checkpoint",
    "saved",
    "saving",
    "restor",
    "restart",
    "attempts left",
    "terminat",
    "exceeded",
    "limit",
    "train_runtime",
    "training",
    "done",
    "reached",
    "success",
    "epochs completed",
    "traceback",
    "deleted",
    "in cluster",
    "revoked",
)
"""A line without any of these, in lower case, cannot match a rule. Containment is 20 times as fast as one pattern of
them all."""


def may_tell(low: str) -> bool:
    """True if the line, given in lower case, may hold an event."""
    return any(word in low for word in _GUARD)


BANNER = re.compile(
    r"^\W*(?:(?:starting|beginning|running|begin|start|===+|---+)\W+)?(?:k-?)?"
    r"(?:fold|trial|run|attempt|experiment|seed|replicate|split)\s*[#:=]?\s*(\d+)(?:\s*(?:/|of)\s*\d+)?\W*(?:[-="
    r"*#.:]*\s*)$"
    r"|^Sender: LSF System"
    r"|^\W*(?:starting|beginning) (?:fold|trial|run|attempt|experiment|seed|replicate|split)\s*[#:=]?\s*(\d+)",
    re.IGNORECASE,
)
"""A line that opens another run in the same file."""


def events_in(text: str) -> list[tuple[EventRule, str | None]]:
    """The rules that ``text`` matches, most specific first, each with its value (text of the first filled group)."""
    if not may_tell(text.lower()):
        return []
    found: list[tuple[EventRule, str | None]] = []
    for rule in EVENTS:
        match = rule.pattern.search(text)
        if match is not None:
            value = next((g for g in match.groups() if g), None)
            found.append((rule, value))
    return _most_specific(found)


_SHADOWS = {
    "time-limit": {"cancelled", "killed", "terminated", "nonzero-exit"},
    "preempted": {"cancelled", "killed", "terminated"},
    "node-failure": {"cancelled", "killed", "terminated"},
    "host-oom-kill": {"killed", "cancelled", "nonzero-exit"},
    "segmentation-fault": {"nonzero-exit", "aborted"},
    "aborted": {"nonzero-exit"},
    "killed": {"nonzero-exit", "terminated"},
    "terminated": {"nonzero-exit"},
    "dist-child-failed": {"nonzero-exit"},
    "interrupted": {"terminated"},
    "min-loss-scale": {"overflow-skip"},
    "overflow-skip": {"nonfinite-skip"},
    "completed": {"checkpoint-saved"},
}
"""A kind hides the vaguer kinds that its own words also match."""


def _most_specific(found: list[tuple[EventRule, str | None]]) -> list[tuple[EventRule, str | None]]:
    hidden = {kind for rule, _ in found for kind in _SHADOWS.get(rule.kind, ())}
    return [(rule, value) for rule, value in found if rule.kind not in hidden]
