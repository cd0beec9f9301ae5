"""``trainwreck server``: the language server protocol over standard input and output, through pygls.

Diagnostics when a file is opened, changed or saved; quick fixes (the fix of a rule, an ignore comment); the catalogue's
page on hover. A file is seen with the rest of its project where that is small enough to be read at every change.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from trainwreck import __version__
from trainwreck.checking import documents, settings, suppress
from trainwreck.checking.check import Checked, check
from trainwreck.collect import SKIPPED_DIRECTORIES, display
from trainwreck.core.errors import TrainwreckError
from trainwreck.core.results import Edit, Finding

MAX_PROJECT = 60
"""Python files that are read again at every change: about 0.1 s for each 1,000 lines."""
PAUSE = 0.3
"""Seconds without another change before a file is checked."""


def serve() -> int:
    """Serve until the editor ends it. Raises TrainwreckError where pygls is not installed."""
    try:
        from pygls.lsp.server import LanguageServer
    except ImportError:
        raise TrainwreckError("the server needs pygls 2; install it with: pip install 'trainwreck[lsp]'") from None
    build(LanguageServer("trainwreck", __version__)).start_io()
    return 0


def build(server: Any) -> Any:
    """``server`` with our features."""
    from lsprotocol import types as lsp

    seen: dict[str, Checked] = {}
    changed: dict[str, float] = {}

    def look(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        found = looked_at(uri, document.source, server.workspace.root_path)
        seen[uri] = found
        name = name_of(uri)
        told = [diagnostic(f, found.texts, lsp) for f in found.result.findings if f.path == name and f.cell is None]
        answer = lsp.PublishDiagnosticsParams(uri=uri, version=document.version, diagnostics=told)
        server.text_document_publish_diagnostics(answer)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)  # type: ignore[untyped-decorator,unused-ignore]
    def opened(params: Any) -> None:
        look(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)  # type: ignore[untyped-decorator,unused-ignore]
    def saved(params: Any) -> None:
        look(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)  # type: ignore[untyped-decorator,unused-ignore]
    async def edited(params: Any) -> None:
        import asyncio

        uri = params.text_document.uri
        stamp = changed[uri] = time.monotonic()
        await asyncio.sleep(PAUSE)
        if changed.get(uri) == stamp:
            look(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)  # type: ignore[untyped-decorator,unused-ignore]
    def closed(params: Any) -> None:
        uri = params.text_document.uri
        seen.pop(uri, None)
        changed.pop(uri, None)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)  # type: ignore[untyped-decorator,unused-ignore]
    def actions(params: Any) -> list[Any]:
        uri = params.text_document.uri
        found = seen.get(uri)
        first, last = params.range.start.line + 1, params.range.end.line + 1
        here = [f for f in at(found, name_of(uri), first, last)] if found else []
        return [action for f in here if found for action in quick_fixes(f, uri, found, lsp)]

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)  # type: ignore[untyped-decorator,unused-ignore]
    def hovered(params: Any) -> Any:
        uri, line = params.text_document.uri, params.position.line + 1
        found = seen.get(uri)
        pages = [explained(f) for f in at(found, name_of(uri), line, line)] if found else []
        text = "\n\n---\n\n".join(dict.fromkeys(p for p in pages if p))
        return lsp.Hover(contents=lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    return server


def looked_at(uri: str, text: str, root: str | None) -> Checked:
    """The document as it stands in the editor, with its project where that is small."""
    path = path_of(uri)
    if path is None or not path.is_file() or not path.stat().st_size:
        return check(["-"], stdin=text.encode(), stdin_name=name_of(uri), use_cache=False)
    finder = settings.Finder()
    try:
        wanted = finder(str(path))
    except TrainwreckError:
        finder, wanted = (lambda _: settings.Settings()), settings.Settings()  # type: ignore[assignment]
    paths: list[str | Path] = [path]
    if root and path.is_relative_to(root) and small(Path(root)):
        paths.append(Path(root))
    return check(paths, wanted, nearest=finder, overlay={name_of(uri): text}, use_cache=False)


def small(root: Path) -> bool:
    """True if the project holds few enough Python files to be read at every change."""
    count, todo = 0, [root]
    for _ in range(200):
        if not todo:
            return True
        try:
            entries = list(todo.pop().iterdir())
        except OSError:
            continue
        count += sum(e.suffix in (".py", ".ipynb") for e in entries)
        if count > MAX_PROJECT or len(entries) > 2000:
            return False
        todo += [e for e in entries if e.is_dir() and not e.is_symlink() and e.name not in SKIPPED_DIRECTORIES]
    return False


def path_of(uri: str) -> Path | None:
    """The file that ``uri`` names, None for a document that has none yet."""
    parts = urlparse(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def name_of(uri: str) -> str:
    """The name that findings give to the document."""
    path = path_of(uri)
    return display(path) if path is not None else "untitled.py"


def at(found: Checked, name: str, first: int, last: int) -> Sequence[Finding]:
    """The findings of this file that touch these lines."""
    return [f for f in found.result.findings if f.path == name and f.line <= last and (f.end_line or f.line) >= first]


def explained(finding: Finding) -> str:
    """The catalogue's page as Markdown, nothing for an id without one."""
    from trainwreck.catalogue.explain import explain

    try:
        page = explain(finding.id)
    except TrainwreckError:
        return ""
    return "```text\n" + page.replace("```", "'''").rstrip() + "\n```"


def _units(text: str, column: int) -> int:
    """A column (characters, from 1) as the protocol counts: UTF-16 units from 0."""
    return len(text[: max(column - 1, 0)].encode("utf-16-le", "surrogatepass")) // 2


def diagnostic(finding: Finding, texts: Any, lsp: Any) -> Any:
    """The finding as the editor shows it, with its proof as related places."""
    line = documents.line(texts, finding.path, finding.line)
    end_line = finding.end_line or finding.line
    last = documents.line(texts, finding.path, end_line)
    end = finding.end_column or len(last.rstrip()) + 1
    kinds = lsp.DiagnosticSeverity
    severity = {"critical": kinds.Error, "warning": kinds.Warning}.get(finding.severity, kinds.Information)
    related = [
        lsp.DiagnosticRelatedInformation(
            location=lsp.Location(uri=Path(p).absolute().as_uri(), range=_rows(n, n, lsp)), message=text
        )
        for p, n, text, _ in finding.links
    ]
    span = lsp.Range(
        lsp.Position(finding.line - 1, _units(line, finding.column)), lsp.Position(end_line - 1, _units(last, end))
    )
    return lsp.Diagnostic(
        range=span,
        message=finding.message,
        severity=severity,
        code=finding.id,
        source="trainwreck",
        related_information=related or None,
    )


def _rows(first: int, last: int, lsp: Any) -> Any:
    return lsp.Range(lsp.Position(first - 1, 0), lsp.Position(last, 0))


def quick_fixes(finding: Finding, uri: str, found: Checked, lsp: Any) -> list[Any]:
    """What the editor offers for a finding: its fix, and the comment that silences it."""
    offered = []
    if finding.fix and finding.fix.edits:
        changes: dict[str, list[Any]] = {}
        for edit in finding.fix.edits:
            target = uri if edit.path == finding.path else Path(edit.path).absolute().as_uri()
            changes.setdefault(target, []).append(_edit(edit, found, lsp))
        offered.append(
            lsp.CodeAction(
                title=f"{finding.fix.text} ({finding.id})",
                kind=lsp.CodeActionKind.QuickFix,
                edit=lsp.WorkspaceEdit(changes=changes),
                is_preferred=finding.fix.safe,
            )
        )
    new = suppress.add([finding], found.texts).get(finding.path)
    if new is not None:
        row = documents.line({finding.path: new}, finding.path, finding.line)
        edit = _edit(Edit(finding.path, finding.line, finding.line, row), found, lsp)
        offered.append(
            lsp.CodeAction(
                title=f"Ignore {finding.id} here",
                kind=lsp.CodeActionKind.QuickFix,
                edit=lsp.WorkspaceEdit(changes={uri: [edit]}),
            )
        )
    return offered


def _edit(edit: Edit, found: Checked, lsp: Any) -> Any:
    """Whole lines; the end of the last one stays, so that a file without a final line end keeps that."""
    if not edit.text:
        return lsp.TextEdit(_rows(edit.line, edit.end_line, lsp), "")
    last = documents.line(found.texts, edit.path, edit.end_line)
    span = lsp.Range(lsp.Position(edit.line - 1, 0), lsp.Position(edit.end_line - 1, _units(last, len(last) + 1)))
    return lsp.TextEdit(span, edit.text.rstrip("\r\n"))
