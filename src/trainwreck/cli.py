"""The command line: parse, call the API, print. Nothing is decided here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from trainwreck import __version__
from trainwreck.core.errors import TrainwreckError

FORMATS = ("full", "concise", "json", "jsonl", "markdown", "html", "package")
FAIL_ON = ("critical", "warning", "suggestion", "never")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="trainwreck")
def cli() -> None:
    """Find out why training went off the rails. Offline: no network, no telemetry, nothing you give it is executed."""


@cli.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--code", multiple=True, metavar="PATH", help="Sources that are not below PATH.")
@click.option("--suspect", multiple=True, metavar="TEXT", help="A theory to be judged by the evidence. Repeatable.")
@click.option("--format", "form", type=click.Choice(FORMATS), default=None, help="Default: full.")
@click.option("-o", "--output", metavar="FILE", help="Write the report there; its format by extension.")
@click.option("--fail-on", type=click.Choice(FAIL_ON), default="critical", show_default=True)
def diagnose(
    paths: tuple[str, ...],
    code: tuple[str, ...],
    suspect: tuple[str, ...],
    form: str | None,
    output: str | None,
    fail_on: str,
) -> None:
    """Post-mortem of run directories, logs, metrics files or a pasted error (-): ranked root causes."""
    from trainwreck import engine

    result = engine.diagnose(paths, code=code, suspects=suspect)
    _deliver(result, form, output)
    _finish(result, fail_on)


def _deliver(result: Any, form: str | None, output: str | None) -> None:
    from trainwreck import report

    if output:
        chosen = form or report.SUFFIXES.get(Path(output).suffix.lower(), "full")
        Path(output).write_text(report.render(result, chosen), encoding="utf-8")
        click.echo(f"report: {output}", err=True)
    else:
        click.echo(report.render(result, form or "full"), nl=False)


def _finish(result: Any, fail_on: str) -> None:
    from trainwreck.core.evidence import SEVERITIES

    worst = result.worst()
    if fail_on != "never" and worst is not None and SEVERITIES.index(worst) >= SEVERITIES.index(fail_on):
        sys.exit(1)


def main() -> None:
    """Entry point: user errors are one sentence and their exit code; our own faults are exit 3 and a report file."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except click.Abort:
        sys.exit(130)
    except TrainwreckError as problem:
        click.echo(f"trainwreck: {problem}", err=True)
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        sys.exit(0)


if __name__ == "__main__":
    main()
