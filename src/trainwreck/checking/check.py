"""The whole of ``check``: collect the sources, analyse them, then select, silence, subtract and fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from trainwreck import engine
from trainwreck.catalogue.load import Catalogue, catalogue
from trainwreck.checking import baseline, fixes, select, suppress
from trainwreck.checking.settings import Settings
from trainwreck.collect import Collected, collect, display
from trainwreck.core.errors import NothingReadable, TrainwreckError
from trainwreck.core.results import Finding, Result
from trainwreck.core.source import Source, from_bytes

SUFFIXES = (
    ".py",
    ".pyw",
    ".ipynb",
    ".yaml",
    ".yml",
    ".json",
    ".toml",
    ".sh",
    ".bash",
    ".slurm",
    ".sbatch",
    ".cfg",
    ".txt",
)
"""What can be a program, a configuration, a launch script or a list of requirements."""


@dataclass(frozen=True)
class Checked:
    """The answer of ``check`` and the texts that it is about. ``silenced`` counts findings that comments silenced,
    ``known`` those that a baseline took away."""

    result: Result
    texts: Mapping[str, str]
    silenced: int = 0
    known: int = 0


def check(
    paths: Iterable[str | Path],
    settings: Settings | None = None,
    *,
    stdin: bytes | None = None,
    stdin_name: str | None = None,
) -> Checked:
    """Check everything under ``paths``. ``-`` is standard input, named ``stdin_name`` where it is given.

    Raises NothingReadable if nothing below ``paths`` could be read, TrainwreckError for settings that mean nothing.
    """
    wanted = settings or Settings()
    known = catalogue()
    _refuse_unknown_words(wanted, known)
    found = collect(paths, stdin)
    sources = [_renamed(s, stdin_name) for s in found.sources if _is_ours(s, found, wanted)]
    if not sources and found.unreadable:
        raise NothingReadable("; ".join(f"{u.path}: {u.reason}" for u in found.unreadable))
    result = engine.check(sources, targets=wanted.target)
    texts = {s.name: s.text() for s in sources if any(f.path == s.name for f in result.findings)}
    texts |= {s.name: text for s in sources if s.name not in texts and "trainwreck:" in (text := s.text())}
    return _finish(result, texts, wanted, known)


def _finish(result: Result, texts: Mapping[str, str], wanted: Settings, known: Catalogue) -> Checked:
    choose = select.chooser(wanted, lambda name: describe(name, known))
    chosen = [f for f in result.findings if choose(f)]
    kept, silenced = suppress.apply(chosen, dict(texts))
    kept = [f for f in kept if choose(f)]
    before = len(kept)
    if wanted.baseline:
        file = Path(wanted.baseline)
        kept = baseline.subtract(file if file.is_absolute() or not wanted.root else wanted.root / file, kept, texts)
    names = {f.id for f in kept}
    causes = [c for c in result.root_causes if c.id in names]
    status = result.status if kept or result.status != "complete" else "nothing_found"
    final = replace(result, findings=kept, root_causes=causes, status=status)
    return Checked(final, texts, len(silenced), before - len(kept))


def describe(name: str, known: Catalogue) -> tuple[str, str]:
    """Family and maturity of an id: of a failure mode, else of a rule."""
    mode = known.mode(name)
    if mode is not None:
        return mode.family, "stable"
    rule = known.rules.get(name, {})
    return str(rule.get("family", "")), str(rule.get("maturity", "stable"))


def _refuse_unknown_words(wanted: Settings, known: Catalogue) -> None:
    ids = [*known.mode_ids, *known.rules, *known.aliases]
    families = {describe(name, known)[0] for name in (*known.mode_ids, *known.rules)}
    unknown = select.unknown_words(wanted, ids, sorted(families))
    if unknown:
        from trainwreck.catalogue.search import nearest

        close = ", ".join(nearest(known, unknown[0], 2))
        hint = f"; did you mean {close}?" if close else ""
        raise TrainwreckError(f"{wanted.path or 'the selection'}: no such id or family: {unknown[0]}{hint}")


def _is_ours(source: Source, found: Collected, wanted: Settings) -> bool:
    if source.name == "<stdin>" or source.name in found.named:
        return True
    name = source.name
    if any(fnmatch(name, pattern) or fnmatch(name.rsplit("/", 1)[-1], pattern) for pattern in wanted.exclude):
        return False
    return source.basename.endswith(SUFFIXES) and not source.is_binary


def _renamed(source: Source, name: str | None) -> Source:
    if source.name != "<stdin>":
        return source
    return from_bytes(name or "stdin.py", source.text().encode())


def apply_fixes(checked: Checked, *, unsafe: bool = False) -> fixes.Fixed:
    """The texts after fixing; nothing is written here."""
    return fixes.apply(checked.result.findings, checked.texts, unsafe=unsafe)


def write_texts(texts: Mapping[str, str]) -> None:
    """Write changed files in place. Raises TrainwreckError naming the file that can't be written."""
    for name, text in sorted(texts.items()):
        try:
            with open(name, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
        except OSError as problem:
            raise TrainwreckError(f"{name}: cannot be written ({problem.strerror}); check its permissions") from problem


def statistics(findings: Sequence[Finding]) -> list[tuple[int, str]]:
    """How often each id occurs, most frequent first."""
    from collections import Counter

    return sorted(((n, name) for name, n in Counter(f.id for f in findings).items()), key=lambda row: (-row[0], row[1]))


def shown(path: Path) -> str:
    """``path`` as findings name it."""
    return display(path)
