"""The whole of ``check``: collect the sources, analyse them, then select, silence, subtract and fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from trainwreck import engine
from trainwreck.catalogue.load import Catalogue, catalogue
from trainwreck.checking import baseline, cache, documents, encoding, fixes, inputs, select, suppress, units
from trainwreck.checking.settings import Settings
from trainwreck.collect import Collected, collect
from trainwreck.core.errors import NothingReadable, TrainwreckError
from trainwreck.core.evidence import Unreadable
from trainwreck.core.results import Excerpt, Finding, Result
from trainwreck.core.row import Row
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
    "dockerfile",
)
"""What can be a program, a configuration, a launch script or a list of requirements."""
MAX_BYTES = 5 << 20
"""A larger file is not read as a whole; the readers say so themselves."""

MAX_ROUNDS = 10
"""Rounds of fixing: fixes that meet on a line go in one after another."""

Nearest = Callable[[str], Settings]
"""The settings that hold for a path."""


class Checked(Row):
    """The answer of ``check`` and the texts that it is about. ``silenced`` counts findings that comments silenced,
    ``known`` those that a baseline took away, ``files`` are the names of all that was looked at."""

    result: Result
    texts: Mapping[str, str]
    silenced: int = 0
    known: int = 0
    files: Sequence[str] = ()


def check(
    paths: Iterable[str | Path],
    settings: Settings | None = None,
    *,
    nearest: Nearest | None = None,
    stdin: bytes | None = None,
    stdin_name: str | None = None,
    overlay: Mapping[str, str] | None = None,
    use_cache: bool = True,
    jobs: int = 0,
) -> Checked:
    """Check everything under ``paths``. ``-`` is standard input, named ``stdin_name`` where it is given.

    ``nearest`` gives the settings of single files where they differ from ``settings``; ``overlay`` are texts that
    count instead of what the files of these names hold (an editor's, or those after fixing); ``jobs`` is the number of
    processes, 0 for as many as there are cores. Raises NothingReadable if
    nothing below ``paths`` could be read, TrainwreckError for settings that mean nothing.
    """
    wanted = settings or Settings()
    closest = nearest or (lambda _: wanted)
    known = catalogue()
    refuse_unknown_words(wanted, known)
    sources, named, unreadable = gather(paths, closest, stdin, stdin_name)
    sources = [_overlaid(s, overlay) for s in sources] if overlay else sources
    contents = {s.name: data for s in sources if (data := _content(s)) is not None}
    held = [from_bytes(s.name, contents[s.name]) if s.name in contents else s for s in sources]
    result = _analysed(held, contents, named, wanted, known, use_cache, jobs)
    told = [*map(engine.unreadable_finding, unreadable), *result.findings]
    lines = [*(f"{u.path}: {u.reason}" for u in unreadable), *result.unreadable]
    result = replace(result, findings=told, unreadable=lines, status="partial" if lines else result.status)
    needed = _interesting(result, contents)
    decoded = {name: encoding.decoded(name, contents[name]) for name in needed}
    return _finish(result, decoded, wanted, closest, known, [s.name for s in sources])


def gather(
    paths: Iterable[str | Path], nearest: Nearest, stdin: bytes | None = None, stdin_name: str | None = None
) -> tuple[list[Source], set[str], list[Unreadable]]:
    """What would be checked, the names that were asked for one by one, and what can't be read.

    Raises NothingReadable where there is only the latter.
    """
    found = collect(paths, stdin)
    sources = [_renamed(s, stdin_name) for s in found.sources if _is_ours(s, found, nearest)]
    # An empty file or directory is no fault of a program.
    unreadable = [u for u in found.unreadable if not u.reason.startswith(("the file is empty", "the directory "))]
    if not sources and unreadable:
        raise NothingReadable("; ".join(f"{u.path}: {u.reason}" for u in unreadable))
    named = found.named | {s.name for s in sources if s.name == (stdin_name or "stdin.py")}
    return sources, named, unreadable


def _overlaid(source: Source, overlay: Mapping[str, str]) -> Source:
    """The source with the text that counts instead of its own, in its own encoding where that can hold it."""
    text = overlay.get(source.name)
    if text is None:
        return source
    try:
        return from_bytes(source.name, encoding.encoded(source.name, text, source.head))
    except (UnicodeEncodeError, LookupError):
        return from_bytes(source.name, text.encode("utf-8", "surrogatepass"))


def _content(source: Source) -> bytes | None:
    """The whole content, None where it is too large or can't be read."""
    if source.size is not None and source.size > MAX_BYTES:
        return None
    try:
        with source.open() as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, ValueError):
        return None
    return data if len(data) <= MAX_BYTES else None


def _analysed(
    sources: Sequence[Source],
    contents: dict[str, bytes],
    named: set[str],
    wanted: Settings,
    known: Catalogue,
    use_cache: bool,
    jobs: int,
) -> Result:
    """The answer on these sources before anything is selected; from the cache where they have not changed."""
    extra = {
        "targets": dict(wanted.target),
        "named": sorted(named & {s.name for s in sources}),
        "large": [[s.name, s.size] for s in sources if s.name not in contents],
    }
    name = cache.key(((s.name, contents[s.name]) for s in sources if s.name in contents), extra) if use_cache else ""
    if name and (kept := cache.load(name)) is not None:
        return kept
    look = partial(units.look, targets=wanted.target, jobs=jobs, keep=use_cache)
    result = _fresh(sources, contents, named, known, look)
    if name:
        cache.store(name, result)
    return result


def _fresh(
    sources: Sequence[Source], contents: dict[str, bytes], named: set[str], known: Catalogue, look: engine.Look
) -> Result:
    ours = any(s.name in named for s in sources) or inputs.speaks_of_training(sources, contents)
    if ours:
        result = engine.check(sources, look=look)
        broken = list(inputs.problems(sources, contents, named))
    else:
        # Nothing of the field: what is not valid Python is told, nothing else is worth a word or the time.
        from trainwreck.code import build

        result = Result(status="nothing_found", read=[s.name for s in sources], verb="check")
        broken = list(build(sources).problems)
    findings = [*result.findings, *(engine.problem_finding(p, known) for p in broken)]
    findings = [_weighed(f, contents, named) for f in findings]
    lines = [*result.unreadable, *(f"{p.path}: {p.reason}" for p in broken if not p.syntax)]
    return replace(
        result,
        findings=sorted(findings, key=engine.finding_order),
        unreadable=lines,
        rules={**result.rules, **engine.facts((f.id for f in findings), known)},
        status="partial" if lines else "complete" if findings else result.status,
    )


def _weighed(finding: Finding, contents: Mapping[str, bytes], named: set[str]) -> Finding:
    """A broken file that nobody asked for by name and that has nothing to do with training is a remark."""
    if finding.id != engine.BROKEN or finding.path in named:
        return finding
    speaks = inputs.ML_WORDS.search(contents.get(finding.path, b""))
    return finding if speaks else replace(finding, severity="suggestion")


def _interesting(result: Result, contents: Mapping[str, bytes]) -> set[str]:
    """Names of the texts that the reports need, and of those with comments to us."""
    names = {f.path for f in result.findings} | {link.path for f in result.findings for link in f.links}
    names |= {e.path for f in result.findings if f.fix for e in f.fix.edits}
    return (names & contents.keys()) | {name for name, data in contents.items() if b"trainwreck:" in data}


def _finish(
    result: Result,
    texts: Mapping[str, str],
    wanted: Settings,
    nearest: Nearest,
    known: Catalogue,
    files: Sequence[str],
) -> Checked:
    choosers: dict[int, Callable[[Finding], bool]] = {}

    def choose(finding: Finding) -> bool:
        own = nearest(finding.path)
        if id(own) not in choosers:
            choosers[id(own)] = select.chooser(own, lambda name: describe(name, known), known.aliases)
        return choosers[id(own)](finding)

    chosen = [f for f in result.findings if choose(f)]
    # A comment is useful if it silences something that would be found, selected in this call or not.
    kept, silenced = suppress.apply(chosen, texts, result.findings, lambda name: meant(name, known), known.aliases)
    kept = [replace(f, fingerprint=baseline.fingerprint(f, texts, wanted.root)) for f in kept if choose(f)]
    before = len(kept)
    if wanted.baseline:
        file = Path(wanted.baseline)
        kept = baseline.subtract(file if file.is_absolute() or not wanted.root else wanted.root / file, kept, texts)
    names = {f.id for f in kept}
    causes = [c for c in result.root_causes if c.id in names]
    status = result.status if kept or result.status != "complete" else "nothing_found"
    final = replace(
        result,
        findings=sorted(kept, key=engine.finding_order),
        root_causes=causes,
        status=status,
        rules={**engine.facts(names, known)},
        excerpts=excerpts(kept, texts),
    )
    return Checked(final, texts, len(silenced), before - len(kept), files)


def excerpts(findings: Iterable[Finding], texts: Mapping[str, str], around: int = 2) -> list[Excerpt]:
    """The lines that the reports show: around each finding, and those that its edits replace."""
    spans: dict[tuple[str, int | None, int, int], set[int]] = {}
    for item in findings:
        last = min(item.end_line or item.line, item.line + 8)
        spans.setdefault((item.path, item.cell, max(1, item.line - around), last + around), set()).add(item.line)
        for edit in item.fix.edits if item.fix else ():
            spans.setdefault((edit.path, edit.cell, edit.line, edit.end_line), set())
    found = []
    for (path, cell, first, last), marked in spans.items():
        rows = documents.lines(texts, path, cell)[first - 1 : last]
        if rows:
            found.append(Excerpt(path, first, rows, sorted(marked), f"cell {cell}" if cell else "", cell))
    return found


def describe(name: str, known: Catalogue) -> tuple[str, str]:
    """Family and maturity of an id: of a failure mode, else of a rule."""
    mode = known.mode(name)
    if mode is not None:
        return mode.family, "stable"
    rule = known.rules.get(name, {})
    return str(rule.get("family", "")), str(rule.get("maturity", "stable"))


def meant(name: str, known: Catalogue) -> str | None:
    """The id that ``name`` is nearest to, empty where none is near; None where it is an id itself."""
    if known.mode(name) is not None or name in known.rules or known.resolve(name):
        return None
    from trainwreck.catalogue.search import nearest

    return next(iter(nearest(known, name, 1)), "")


def refuse_unknown_words(wanted: Settings, known: Catalogue) -> None:
    """Raise TrainwreckError for an id or a family that does not exist, naming the nearest that does."""
    if not select.words(wanted):
        return
    ids = [*known.mode_ids, *known.rules, *known.aliases]
    families = {describe(name, known)[0] for name in (*known.mode_ids, *known.rules)}
    unknown = select.unknown_words(wanted, ids, sorted(families))
    if unknown:
        from difflib import get_close_matches

        from trainwreck.catalogue.search import nearest

        close = [*nearest(known, unknown[0], 2), *get_close_matches(unknown[0], families, 1)]
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise TrainwreckError(f"{wanted.path or 'the selection'}: no such id or family: {unknown[0]}{hint}")


def _is_ours(source: Source, found: Collected, nearest: Nearest) -> bool:
    if source.name == "<stdin>" or source.name in found.named:
        return True
    base = source.basename
    if not base.endswith(SUFFIXES) or source.is_binary or (base.endswith(".txt") and "require" not in base):
        return False
    own = nearest(source.name)
    return not any(select.path_fits(source.name, pattern, own.root) for pattern in own.exclude)


def _renamed(source: Source, name: str | None) -> Source:
    if source.name != "<stdin>":
        return source
    return from_bytes(name or "stdin.py", source.text().encode())


class Mended(Row):
    """The last answer, the texts that the fixes changed, and how many findings they fixed and refused."""

    checked: Checked
    texts: Mapping[str, str]
    before: Mapping[str, str]
    fixed: int
    refused: int


def mend(run: Callable[[Mapping[str, str]], Checked], *, unsafe: bool = False) -> Mended:
    """Apply the fixes of what ``run`` finds, again and again until nothing changes. Nothing is written here.

    ``run`` checks everything with these texts in place of the files.
    """
    overlay: dict[str, str] = {}
    before: dict[str, str] = {}
    fixed = refused = 0
    checked = run(overlay)
    for _ in range(MAX_ROUNDS):
        possible, hopeless = _mendable(checked.result.findings, unsafe)
        done = fixes.apply(possible, checked.texts, unsafe=unsafe)
        refused = len(done.refused) + hopeless
        if not done.texts:
            break
        fixed += len(done.fixed)
        before = {**{name: checked.texts[name] for name in done.texts}, **before}
        overlay = {**overlay, **done.texts}
        checked = run(overlay)
    return Mended(checked, {n: t for n, t in overlay.items() if t != before[n]}, before, fixed, refused)


def _mendable(findings: Sequence[Finding], unsafe: bool) -> tuple[list[Finding], int]:
    """Findings outside files that their language refuses as a whole (nobody could say whether a fix broke them), and
    how many within them could have been fixed."""
    broken = {f.path for f in findings if f.id == engine.BROKEN and f.cell is None}
    left = [f for f in findings if f.path in broken and f.fix and f.fix.edits and (f.fix.safe or unsafe)]
    return [f for f in findings if f.path not in broken], len(left)


def statistics(findings: Sequence[Finding]) -> list[tuple[int, str, str, int]]:
    """(how often, id, severity, how many of them can be fixed) of each id, most frequent first."""
    count = Counter(f.id for f in findings)
    severity = {f.id: f.severity for f in findings}
    fixable = Counter(f.id for f in findings if f.fix and f.fix.edits)
    found = [(n, name, severity[name], fixable[name]) for name, n in count.items()]
    return sorted(found, key=lambda row: (-row[0], row[1]))
