"""What the verb ``check`` does with its options. Prints through the function that it is given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click

from trainwreck.catalogue.load import catalogue
from trainwreck.checking import baseline, encoding, fixes, settings, suppress
from trainwreck.checking.check import Checked, check, gather, mend, refuse_unknown_words, statistics
from trainwreck.core.errors import TrainwreckError
from trainwreck.core.evidence import SEVERITIES
from trainwreck.core.results import Finding, Result

Deliver = Callable[[Result, str | None, str | None, str], None]


def run(paths: Sequence[str], options: Mapping[str, Any], deliver: Deliver) -> int:
    """Check ``paths``; the exit code. Raises TrainwreckError for what the user should correct."""
    if not options["watch"]:
        return once(paths, options, deliver)
    if "-" in paths:
        raise TrainwreckError("--watch needs files: standard input comes only once")
    from trainwreck.checking.watch import watch

    def again() -> None:
        if options["form"] in (None, "full"):
            click.clear()
        once(paths, options, deliver)

    return watch(paths, again, lambda text: click.echo(text, err=True))


def once(paths: Sequence[str], options: Mapping[str, Any], deliver: Deliver) -> int:
    """One check of ``paths``; the exit code."""
    wanted = configured(paths, options)
    nearest = nearest_settings(wanted, options)
    if options["show_settings"]:
        click.echo(settings.shown(wanted), nl=False)
        return 0
    if options["show_files"]:
        sources, _, _ = gather(paths, nearest, stdin_name=options["stdin_filename"])
        click.echo("".join(f"{s.name}\n" for s in sources), nl=False)
        return 0
    stdin = sys.stdin.buffer.read() if "-" in paths else None

    def looked(overlay: Mapping[str, str]) -> Checked:
        return check(
            paths,
            wanted,
            nearest=nearest,
            stdin=stdin,
            stdin_name=options["stdin_filename"],
            overlay=overlay,
            use_cache=not options["no_cache"],
            jobs=options["jobs"],
        )

    if options["diff"] or options["fix"] or options["unsafe_fixes"]:
        return _mended(looked, None if stdin is None else stdin.decode("utf-8", "replace"), options, deliver, wanted)
    checked = looked({})
    if options["write_baseline"]:
        count = baseline.write(Path(options["write_baseline"]), checked.result.findings, checked.texts)
        click.echo(f"{options['write_baseline']}: {_plural(count, 'finding')}", err=True)
        return 0
    if options["add_ignore"] is not None:
        changed = suppress.add(checked.result.findings, checked.texts, options["add_ignore"])
        encoding.write(changed, checked.texts)
        click.echo(f"{_plural(len(changed), 'file')} changed", err=True)
        return 0
    return _told(checked, options, deliver, wanted.fail_on)


def _mended(
    looked: Callable[[Mapping[str, str]], Checked],
    given: str | None,
    options: Mapping[str, Any],
    deliver: Deliver,
    wanted: settings.Settings,
) -> int:
    """Apply or show the fixes. ``given`` is the text of standard input, where that is what is checked."""
    fail_on = wanted.fail_on
    done = mend(looked, unsafe=options["unsafe_fixes"])
    if options["diff"]:
        click.echo(fixes.diff(done.before, done.texts), nl=False)
        return int(bool(done.texts))
    if given is not None:
        # The corrected text is the answer, as a formatter gives it; what is left is told on standard error.
        click.echo(next(iter(done.texts.values()), given), nl=False)
        return exit_code(done.checked.result, fail_on)
    encoding.write(done.texts, done.before)
    refused = f", {done.refused} refused" if done.refused else ""
    click.echo(f"fixed {_plural(done.fixed, 'finding')} in {_plural(len(done.texts), 'file')}{refused}", err=True)
    return _told(done.checked, options, deliver, fail_on)


def _told(checked: Checked, options: Mapping[str, Any], deliver: Deliver, fail_on: str) -> int:
    if options["statistics"]:
        for count, name, severity, fixable in statistics(checked.result.findings):
            mark = "  [*]" if fixable else ""
            click.echo(f"{count:>6}  {severity:<10}  {name}{mark}")
    else:
        deliver(checked.result, options["form"], options["output"], options["color"])
    quiet = [f"{checked.silenced} silenced by comments"] if checked.silenced else []
    quiet += [f"{checked.known} known to the baseline"] if checked.known else []
    if quiet and options["form"] in (None, "full"):
        click.echo(f"trainwreck: {', '.join(quiet)}", err=True)
    return 0 if options["exit_zero"] else exit_code(checked.result, fail_on)


def configured(paths: Sequence[str], options: Mapping[str, Any]) -> settings.Settings:
    """The settings of the nearest file, with the command line on top."""
    first = Path(paths[0] if paths[0] != "-" else options["stdin_filename"] or ".")
    return _on_top(settings.Settings() if options["isolated"] else settings.find(first), options)


def nearest_settings(wanted: settings.Settings, options: Mapping[str, Any]) -> Callable[[str], settings.Settings]:
    """For each file the settings of the nearest file above it, with the command line on top."""
    if options["isolated"]:
        return lambda _: wanted
    find = settings.Finder()
    known = catalogue()

    @cache
    def of(path: Path | None, name: str) -> settings.Settings:
        if path == wanted.path:
            return wanted
        own = _on_top(find(name), options)
        refuse_unknown_words(own, known)
        return own

    def nearest(name: str) -> settings.Settings:
        found = find(name)
        return of(found.path, name if found.path != wanted.path else "")

    return nearest


def _on_top(wanted: settings.Settings, options: Mapping[str, Any]) -> settings.Settings:
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


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def exit_code(result: Result, fail_on: str) -> int:
    """1 if anything at or above ``fail_on`` was found. What could not be read alone is a remark, not a finding."""
    found: list[Finding] = [f for f in result.findings if f.sign != "unreadable"]
    if fail_on == "never" or not found:
        return 0
    worst = max(SEVERITIES.index(f.severity) for f in found)
    return int(worst >= SEVERITIES.index(fail_on))
