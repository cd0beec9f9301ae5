"""What the verb ``check`` does with its options. Prints through the function that it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trainwreck.checking import baseline, fixes, settings, suppress
from trainwreck.checking.check import Checked, apply_fixes, check, statistics, write_texts
from trainwreck.core.evidence import SEVERITIES
from trainwreck.core.results import Result

Deliver = Callable[[Result, str | None, str | None, str], None]


def run(paths: Sequence[str], options: Mapping[str, Any], deliver: Deliver) -> int:
    """Check ``paths``; the exit code. Raises TrainwreckError for what the user should correct."""
    wanted = configured(paths, options)
    checked = check(paths, wanted, stdin_name=options["stdin_filename"])
    if options["write_baseline"]:
        count = baseline.write(Path(options["write_baseline"]), checked.result.findings, checked.texts)
        click.echo(f"{options['write_baseline']}: {count} findings", err=True)
        return 0
    if options["add_ignore"] is not None:
        changed = suppress.add(checked.result.findings, dict(checked.texts), options["add_ignore"])
        write_texts(changed)
        click.echo(f"{len(changed)} files changed", err=True)
        return 0
    if options["diff"]:
        after = apply_fixes(checked, unsafe=options["unsafe_fixes"])
        click.echo(fixes.diff(checked.texts, after.texts), nl=False)
        return 1 if after.texts else 0
    if options["fix"] or options["unsafe_fixes"]:
        checked = _fix(checked, paths, wanted, unsafe=options["unsafe_fixes"], name=options["stdin_filename"])
    if options["statistics"]:
        for count, name in statistics(checked.result.findings):
            click.echo(f"{count:>6}  {name}")
    else:
        deliver(checked.result, options["form"], options["output"], options["color"])
    return exit_code(checked.result, wanted.fail_on)


def configured(paths: Sequence[str], options: Mapping[str, Any]) -> settings.Settings:
    """The settings of the nearest file, with the command line on top."""
    first = Path(paths[0] if paths[0] != "-" else options["stdin_filename"] or ".")
    wanted = settings.Settings() if options["isolated"] else settings.find(first)
    wanted = settings.override(wanted, options["config"])
    if options["select"]:
        wanted = replace(wanted, select=_words(options["select"]))
    if options["target"]:
        wanted = replace(wanted, target={**wanted.target, **settings.targets(list(options["target"]))})
    return replace(
        wanted,
        extend_select=(*wanted.extend_select, *_words(options["extend_select"])),
        ignore=(*wanted.ignore, *_words(options["ignore"])),
        preview=wanted.preview or options["preview"],
        baseline=str(Path(options["baseline"]).absolute()) if options["baseline"] else wanted.baseline,
        fail_on=options["fail_on"] or wanted.fail_on,
    )


def _words(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(word.strip() for text in given for word in text.split(",") if word.strip())


def _fix(
    checked: Checked, paths: Sequence[str], wanted: settings.Settings, *, unsafe: bool, name: str | None
) -> Checked:
    done = apply_fixes(checked, unsafe=unsafe)
    write_texts(done.texts)
    refused = f", {len(done.refused)} refused" if done.refused else ""
    click.echo(f"fixed {len(done.fixed)} findings in {len(done.texts)} files{refused}", err=True)
    return check(paths, wanted, stdin_name=name) if done.texts else checked


def exit_code(result: Result, fail_on: str) -> int:
    """1 if anything at or above ``fail_on`` was found."""
    worst = result.worst()
    if fail_on == "never" or worst is None:
        return 0
    return int(SEVERITIES.index(worst) >= SEVERITIES.index(fail_on))
