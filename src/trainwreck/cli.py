"""The command line: parse, call the API, print. Nothing is decided here."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from trainwreck import __version__
from trainwreck.core.errors import TrainwreckError

FORMATS = ("full", "concise", "json", "jsonl", "markdown", "html", "package")
CHECK_FORMATS = (*FORMATS[:-1], "sarif", "github", "gitlab", "junit")
FAIL_ON = ("critical", "warning", "suggestion", "never")
INTERNAL = 3
HAS_AN_END = frozenset({"multiprocessing.context", "trainwreck.record", "matplotlib", "torch", "coverage"})
"""Modules that leave something to be done when the process ends: children, files, measurements."""


class Verbs(click.Group):
    """A group that guesses the verb where a path stands in its place, and says which it took."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        first = args[0]
        there = first == "-" or os.path.exists(first)
        if there and self.get_command(ctx, first) is None and not ctx.resilient_parsing:
            from trainwreck.checking.guess import verb

            name, why = verb(first)
            click.echo(f"trainwreck: {name} {first} ({why})", err=True)
            return name, self.get_command(ctx, name), args
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="trainwreck")
def cli() -> None:
    """Find out why training went off the rails. Offline: no network, no telemetry, nothing you give it is executed."""


@cli.command()
@click.argument("paths", nargs=-1, metavar="PATH…")
@click.option("--code", multiple=True, metavar="PATH", help="Sources that are not below PATH.")
@click.option("--suspect", multiple=True, metavar="TEXT", help="A theory to be judged by the evidence. Repeatable.")
@click.option("--symptom", multiple=True, metavar="TEXT", help="What you saw, in your own words. Repeatable.")
@click.option("--package", metavar="FILE", help="A context package (JSON): artifacts, symptoms, constraints.")
@click.option("--format", "form", type=click.Choice(FORMATS), default=None, help="Default: full.")
@click.option("-o", "--output", metavar="FILE", help="Write the report there; its format by extension.")
@click.option("--artifacts", metavar="DIR", help="Write loss_plot.png and gradient_analysis.md there.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--fail-on", type=click.Choice(FAIL_ON), default="critical", show_default=True)
def diagnose(
    paths: tuple[str, ...],
    code: tuple[str, ...],
    suspect: tuple[str, ...],
    symptom: tuple[str, ...],
    package: str | None,
    form: str | None,
    output: str | None,
    artifacts: str | None,
    color: str,
    fail_on: str,
) -> None:
    """Post-mortem of run directories, logs, metrics files or a pasted error (-): ranked root causes.

    Exit code 0: nothing at or above --fail-on; 1: something; 2: nothing readable or wrong usage; 3: our own failure.
    """
    from trainwreck import engine

    if package:
        from trainwreck.package import read_package

        context = read_package(package)
        paths, code, symptom = (*paths, *context.paths), (*code, *context.code), (*symptom, *context.symptoms)
        form = form or ("package" if context.structured and not output else None)
    if not paths:
        raise click.UsageError("name a run directory, a log or a metrics file, or - for a pasted error")
    result = engine.diagnose(paths, code=code, suspects=suspect, symptoms=symptom)
    if artifacts:
        from trainwreck.report import artifacts as writer

        result = result.with_artifacts(writer.write(result, Path(artifacts)))
    _deliver(result, form, output, color)
    _finish(result, fail_on)


@cli.command()
@click.argument("paths", nargs=-1, metavar="[PATH…]")
@click.option("--select", multiple=True, metavar="IDS", help="Only these ids, families or prefixes (comma-separated).")
@click.option("--extend-select", multiple=True, metavar="IDS", help="These as well, preview rules included.")
@click.option("--ignore", multiple=True, metavar="IDS", help="Not these.")
@click.option("--target", multiple=True, metavar="NAME==VERSION",
              help="Check against this release; env or env:PATH for what is installed there. Repeatable.")  # fmt: skip
@click.option("--config", multiple=True, metavar="'KEY = VALUE'", help="Override one setting. Repeatable.")
@click.option("--isolated", is_flag=True, help="Read no settings file.")
@click.option("--preview", is_flag=True, help="Rules that are not yet stable as well.")
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option("--unsafe-fixes", is_flag=True, help="Apply the others as well, hyper-parameters included.")
@click.option("--diff", is_flag=True, help="Print what the fixes would change instead; exit 1 if anything.")
@click.option("--add-ignore", metavar="REASON", help="Write an ignore comment with REASON on each finding's line.")
@click.option("--baseline", metavar="FILE", help="Tell only what FILE does not know.")
@click.option("--write-baseline", metavar="FILE", help="Write today's findings to FILE.")
@click.option("--statistics", is_flag=True, help="Count findings per id instead.")
@click.option("--show-settings", is_flag=True, help="Print the settings that hold instead.")
@click.option("--show-files", is_flag=True, help="Print the files that would be checked instead.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes.")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep the answers for unchanged files.")
@click.option("-j", "--jobs", type=click.IntRange(0), default=0, help="Processes at most. Default: one a core.")
@click.option("--stdin-filename", metavar="NAME", help="What - is called.")
@click.option("--format", "form", type=click.Choice(CHECK_FORMATS), default=None, help="Default: full.")
@click.option("-o", "--output", metavar="FILE", help="Write the report there; its format by extension.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--fail-on", type=click.Choice(FAIL_ON), default=None, help="Default: critical.")
@click.option("--exit-zero", is_flag=True, help="Exit code 0 whatever is found.")
def check(paths: tuple[str, ...], **options: Any) -> None:
    """Static analysis before the run: what will crash, and what will silently train the wrong thing.

    Exit code 0: nothing at or above --fail-on; 1: something; 2: nothing readable or wrong usage; 3: our own failure.
    """
    import gc

    was_on = gc.isenabled()
    if not options["watch"]:
        gc.disable()  # what one look makes is needed to its end; of several programs each is collected (units)
    try:
        from trainwreck.checking import command

        code = command.run(paths or (".",), options, _deliver)
    finally:
        if was_on:
            gc.enable()
    sys.exit(code)


@cli.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SCRIPT [ARGS…]")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module, as with python -m.")
@click.option("--record-to", metavar="DIR", help="Default: .trainwreck/runs/DATE-SCRIPT.")
@click.option("--format", "form", type=click.Choice(FORMATS), default=None, help="Default: full, on standard error.")
@click.option("-o", "--output", metavar="FILE", help="Write the report there; its format by extension.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--fail-on", type=click.Choice(FAIL_ON), default=None, help="Turn an exit code 0 into 1. Default: never.")
@click.option("--on-alarm", metavar="CMD", help="Shell command at each alarm (facts: TRAINWRECK_ALARM_*).")
@click.option("--stop-on", type=click.Choice(["critical", "warning"]), help="End the program at such an alarm.")
@click.option("--every-leaf", is_flag=True, help="Look at the outputs of every leaf module at every step (dearer).")
@click.option("--quiet", is_flag=True, help="No alarms on standard error while it runs.")
def run(
    command: tuple[str, ...],
    module: bool,
    record_to: str | None,
    form: str | None,
    output: str | None,
    color: str,
    fail_on: str | None,
    **options: Any,
) -> None:
    """A training script under the flight recorder, unchanged; the diagnosis at its end.

    SCRIPT may be a launcher (torchrun, accelerate launch) with its arguments: each rank is recorded. The exit code is
    the script's own (128 + signal); 0 becomes 1 only under --fail-on.
    """
    from trainwreck.record import verb

    words = ("-m", *command) if module else command
    given = {name: value for name, value in options.items() if value}
    sys.exit(verb.run(words, record_to, form, output, color, fail_on, _deliver, given))


@cli.command()
@click.argument("recording", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--on-alarm", metavar="CMD", help="Shell command for each alarm (facts: TRAINWRECK_ALARM_*).")
@click.option("--once", is_flag=True, help="Tell what is there and end.")
def follow(recording: Path, on_alarm: str | None, once: bool) -> None:
    """Alarms of a growing RUN as they come; ends with it."""
    from trainwreck.record import follow as following

    with contextlib.suppress(KeyboardInterrupt):
        for event in following.follow(recording, wait=not once):
            click.echo(following.line(event))
            if on_alarm:
                following.call(on_alarm, event)


@cli.command()
@click.argument("thing", metavar="THING", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["full", "json"]), default="full", show_default=True)
def inspect(thing: Path, form: str) -> None:
    """What is in a recording (modules by step, heat maps) or in a .safetensors checkpoint."""
    import json

    from trainwreck.record import inspection

    facts = inspection.inspect(thing)
    click.echo(json.dumps(facts, indent=1) if form == "json" else "\n".join(inspection.text(facts)))


@cli.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE…", type=click.Path(path_type=Path))
@click.option("--device", type=click.Choice(["cpu"]), default=None, help="Hide all other devices from the script.")
@click.option("--format", "form", type=click.Choice(["full", "json"]), default="full", show_default=True)
def replay(captures: tuple[Path, ...], device: str | None, form: str) -> None:
    """Run the script of a CAPTURE again up to the failing step, op by op: where the first non-finite value is born.

    A recording stands for all of its captures.
    """
    import json

    from trainwreck.record import replay as replaying

    told = []
    for capture in replaying.captures(captures):
        told.append(replaying.replay(capture, device))
        click.echo(json.dumps(told[-1]) if form == "json" else "\n".join(replaying.lines(told[-1])))
    if len(told) > 1 and form == "full":
        click.echo(replaying.together(told))


@cli.command()
@click.argument("id", required=False)
@click.option("--list", "listing", is_flag=True, help="Every failure mode and rule, by family.")
@click.option("--family", metavar="NAME", help="With --list: only this family.")
@click.option("--search", metavar="WORDS", help="Failure modes that fit these words.")
@click.option("--format", "form", type=click.Choice(["full", "json"]), default="full", show_default=True)
def explain(id: str | None, listing: bool, family: str | None, search: str | None, form: str) -> None:
    """One failure mode, sign or rule of the catalogue: what it is, what shows it, how to fix and verify it."""
    from trainwreck.catalogue import explain as pages

    if search:
        click.echo(pages.search(search), nl=False)
    elif listing or family:
        click.echo(pages.listing(family=family))
    elif id is None:
        raise click.UsageError("name an id, or use --list or --search WORDS")
    elif form == "json":
        import json

        click.echo(json.dumps(pages.as_json(id), indent=2, ensure_ascii=False))
    else:
        _page(pages.explain(id))


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes trainwreck's words in a shell."""
    from trainwreck.checking.completion import script

    click.echo(script(cli, shell))


@cli.command()
def server() -> None:
    """A language server on standard input and output, for editors (needs the extra lsp)."""
    from trainwreck.checking.server import serve

    sys.exit(serve())


@cli.command()
def schema() -> None:
    """The JSON schema of every answer."""
    from trainwreck.report.json import schema as text

    click.echo(text(), nl=False)


@cli.command()
@click.option("--format", "form", type=click.Choice(["full", "json"]), default="full", show_default=True)
def env(form: str) -> None:
    """Versions and platform, for an issue report."""
    from trainwreck.environment import facts

    found = facts()
    if form == "json":
        import json

        click.echo(json.dumps(found, indent=2))
    else:
        width = max(map(len, found))
        click.echo("\n".join(f"{name:<{width}}  {value}" for name, value in found.items()))


def _page(text: str) -> None:
    """Through a pager only on a terminal and only where the text is longer than the screen."""
    import shutil

    if sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines:
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def _deliver(result: Any, form: str | None, output: str | None, color: str) -> None:
    from trainwreck import report

    if output:
        chosen = form or report.SUFFIXES.get(Path(output).suffix.lower(), "full")
        try:
            Path(output).write_text(report.render(result, chosen), encoding="utf-8")
        except OSError as problem:
            raise TrainwreckError(f"{output}: cannot be written ({problem.strerror}); name another file") from problem
        click.echo(f"report: {output}", err=True)
    else:
        from trainwreck.report.screen import options

        text = report.render(result, form or "full", **options(sys.stdout, color))
        if sys.stdout is None:
            raise TrainwreckError("standard output is closed; use -o FILE")
        try:
            sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "replace"))
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as problem:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python tries once more at shutdown
            raise TrainwreckError(f"standard output cannot be written ({problem.strerror}); use -o FILE") from problem


def _finish(result: Any, fail_on: str) -> None:
    from trainwreck.core.evidence import SEVERITIES

    worst = result.worst()
    if fail_on != "never" and worst is not None and SEVERITIES.index(worst) >= SEVERITIES.index(fail_on):
        sys.exit(1)


def _internal(problem: Exception) -> int:
    """Our own failure: one line and where the report is, never a traceback on the user's screen."""
    import tempfile
    import traceback

    handle, name = tempfile.mkstemp(prefix="trainwreck-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as report:
        report.write(f"trainwreck {__version__}\n{' '.join(sys.argv[1:])}\n\n")
        report.write("".join(traceback.format_exception(problem)))
    click.echo(f"trainwreck: a fault of ours ({type(problem).__name__}); please report it with {name}", err=True)
    return INTERNAL


def main() -> None:
    """Entry point: a user's error is one sentence and its exit code; our own faults are exit 3 and a report file."""
    try:
        code = cli(standalone_mode=False, prog_name="trainwreck")
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except TrainwreckError as problem:
        click.echo(f"trainwreck: {problem}", err=True)
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has gone; Python must not complain about it at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except Exception as problem:
        sys.exit(_internal(problem))


def program() -> None:
    """What the command ``trainwreck`` calls: ``main``, and where nothing else is to be ended, an end at once.

    Freeing every object of a check, one by one, takes a tenth of its time (mypy ends in this way, too).
    """
    import threading

    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if HAS_AN_END.isdisjoint(sys.modules) and threading.active_count() == 1:
            with contextlib.suppress(OSError, AttributeError):
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        raise


if __name__ == "__main__":
    program()
