"""One entry of the catalogue as plain text, the list of all, and a search by words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from trainwreck.catalogue.load import CODE_PREFIX, Catalogue, catalogue
from trainwreck.catalogue.model import Mode
from trainwreck.core.errors import UnknownId

WIDTH = 100


def explain(name: str, known: Catalogue | None = None) -> str:
    """The entry of this id, alias or ``code-`` sign as plain text. Raises UnknownId, naming the nearest ids."""
    known = known or catalogue()
    found = known.resolve(name)
    if found is None:
        from trainwreck.catalogue.search import nearest

        close = ", ".join(nearest(known, name))
        raise UnknownId(f"no such id: {name}" + (f"; did you mean {close}?" if close else ""))
    mode = known.mode(found)
    if mode is not None:
        return "\n".join(_mode_page(mode, known)).rstrip() + "\n"
    if found in known.rules:
        return "\n".join(_rule_page(found, known)).rstrip() + "\n"
    return "\n".join(_sign_page(found, known)).rstrip() + "\n"


def as_json(name: str, known: Catalogue | None = None) -> dict[str, Any]:
    """The entry as it is written in the catalogue. Raises UnknownId."""
    known = known or catalogue()
    explain(name, known)
    found = known.resolve(name) or name
    for part, kind in (("modes", "failure-mode"), ("rules", "rule"), ("signs", "sign")):
        entry = known.raw(part).get(found)
        if entry is not None:
            return {"kind": kind, **entry}
    raise UnknownId(f"no such id: {name}")


def listing(known: Catalogue | None = None, family: str | None = None) -> str:
    """Every failure mode and rule, a line each, by family. Raises UnknownId for a family that does not exist."""
    known = known or catalogue()
    families: dict[str, list[tuple[str, str]]] = {}
    for name, entry in known.raw("modes").items():
        families.setdefault(entry["family"], []).append((name, entry["title"]))
    for name, rule in known.rules.items():
        families.setdefault(str(rule["family"]), []).append((name, f"{rule['title']} (rule)"))
    if family is not None and family not in families:
        raise UnknownId(f"no such family: {family}; there are {', '.join(sorted(families))}")
    lines: list[str] = []
    for title in sorted(families) if family is None else [family]:
        lines.append(title)
        lines += [f"  {name:<36} {text}" for name, text in sorted(families[title])]
        lines.append("")
    return "\n".join(lines)


def search(words: str, known: Catalogue | None = None, limit: int = 10) -> str:
    """Failure modes that fit ``words``, best first, a line each."""
    from trainwreck.catalogue.search import index, nearest

    known = known or catalogue()
    hits = index(known).search(words, limit)
    if not hits:
        close = ", ".join(nearest(known, words.replace(" ", "-")))
        return f"nothing fits {words!r}" + (f"; did you mean {close}?" if close else "") + "\n"
    return "\n".join(f"{hit.id:<36} {hit.title}" for hit in hits) + "\n"


def _mode_page(mode: Mode, known: Catalogue) -> Iterator[str]:
    yield f"{mode.id} ({mode.family}, {mode.severity})"
    yield mode.title
    if mode.maturity == "preview":
        yield "Preview: no case of this mode is in the catalogue yet, so its confidence stays below 0.65."
    yield ""
    yield from _wrap(mode.mechanism)
    yield ""
    yield from _signs("Speaks for it", ((s.sign, s.weight, s.conclusive) for s in mode.signs if s.weight > 0), known)
    yield from _signs("Speaks against it", ((s.sign, s.weight, False) for s in mode.signs if s.weight < 0), known)
    if mode.mistaken_for:
        yield "Easily mistaken for"
        for other, text in mode.mistaken_for.items():
            yield from _wrap(f"{other}: {text}", "  ")
        yield ""
    if mode.leads_to:
        yield f"Leads to: {', '.join(mode.leads_to)}"
        yield ""
    for number, fix in enumerate(mode.fixes, 1):
        yield "Fix" if len(mode.fixes) == 1 else f"Fix {number}"
        yield from _wrap(fix["do"], "  ")
        yield from _wrap(f"Expect: {fix.get('expect', '')}", "  ")
        yield from _wrap(f"Verify: {fix.get('verify', '')}", "  ")
        yield ""
    yield from _wrap(f"If that does not help: {mode.if_not}")
    yield from _wrap(f"Proof: {mode.experiment}")
    yield ""
    if mode.references:
        yield "References"
        for reference in mode.references:
            yield from _wrap(f"{reference['key']}: {reference['says']}", "  ")
    if mode.aliases:
        yield ""
        yield f"Also known as: {', '.join(mode.aliases)}"


def _signs(title: str, entries: Iterable[tuple[str, float, bool]], known: Catalogue) -> Iterator[str]:
    rows = sorted(entries, key=lambda entry: -abs(entry[1]))
    if not rows:
        return
    yield title
    for name, weight, conclusive in rows:
        meant = known.sign(name)
        strength = "proves it" if conclusive else _strength(abs(weight))
        yield from _wrap(f"{name} ({strength}): {meant.meaning if meant else ''}", "  ")
    yield ""


def _strength(weight: float) -> str:
    return "strong" if weight >= 2.5 else "good" if weight >= 1.5 else "hint"


def _rule_page(name: str, known: Catalogue) -> Iterator[str]:
    rule = known.rules[name]
    yield f"{name} (rule, {rule['family']}, {rule['severity']})"
    yield rule["title"]
    yield ""
    yield from _wrap(rule.get("why", ""))
    yield from _wrap(f"Fix: {rule.get('fix', '')}")


def _sign_page(name: str, known: Catalogue) -> Iterator[str]:
    meant = known.sign(name)
    if meant is None:
        return
    yield f"{name} (sign, {meant.family})"
    yield meant.meaning
    if meant.unit:
        yield f"Unit: {meant.unit}"
    if meant.needs:
        yield f"Seen in: {', '.join(meant.needs)}"
    speakers = known.modes_by_sign.get(name, ())
    weights = [(mode, entry.weight) for n in speakers if (mode := known.mode(n)) and (entry := mode.weight(name))]
    for title, chosen in (
        ("Speaks for", [w for w in weights if w[1] > 0]),
        ("Speaks against", [w for w in weights if w[1] < 0]),
    ):
        if chosen:
            yield ""
            yield title
            for mode, _ in sorted(chosen, key=lambda pair: (-abs(pair[1]), pair[0].id)):
                yield f"  {mode.id:<36} {mode.title}"
    if name.startswith(CODE_PREFIX):
        yield f"See: trainwreck explain {name.removeprefix(CODE_PREFIX)}"


def _wrap(text: str, indent: str = "") -> list[str]:
    flat = " ".join(text.split())
    return (
        textwrap.wrap(flat, WIDTH, initial_indent=indent, subsequent_indent=indent + "  " * bool(indent))
        if flat
        else []
    )
