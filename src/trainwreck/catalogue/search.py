"""Find failure modes by words: SQLite FTS5 over the catalogue, and the nearest ids for a misspelt one."""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainwreck.catalogue.load import Catalogue

_WORD = re.compile(r"[a-z0-9_]{2,}")
_STOP = frozenset(
    "the a an and or of to in on at is are was were be by for with from it its this that as not no does do my our i we "
    "you than then when while after before during has have had but so if into over very only all any some more most".split()
)
_COLUMNS = ("title", "phrases", "aliases", "mechanism", "signs", "fixes")
_WEIGHTS = (6.0, 5.0, 4.0, 2.0, 1.5, 0.5)
"""bm25 column weights: a title or a user's own phrase tells more than a mechanism, which tells more than a fix."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A failure mode that the words fit. ``score`` grows with the fit (bm25, negated); ``share`` is the part of the
    query's words that the entry holds."""

    id: str
    title: str
    score: float
    share: float


class Index:
    """A full-text index in memory, built in a few milliseconds."""

    def __init__(self, known: Catalogue) -> None:
        self._db = sqlite3.connect(":memory:")
        columns = ", ".join(_COLUMNS)
        self._db.execute(f"CREATE VIRTUAL TABLE modes USING fts5(id UNINDEXED, {columns}, tokenize='porter unicode61')")
        signs = known.raw("signs")
        rows = [_row(name, entry, signs) for name, entry in sorted(known.raw("modes").items())]
        self._db.executemany(f"INSERT INTO modes VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})", rows)
        self._titles = {name: entry["title"] for name, entry in known.raw("modes").items()}

    def search(self, words: str, limit: int = 10) -> list[Hit]:
        """Modes that fit ``words``, best first. Any text is allowed."""
        terms = list(dict.fromkeys(t for t in _WORD.findall(words.lower()) if t not in _STOP))[:64]
        if not terms:
            return []
        query = " OR ".join(f'"{term}"' for term in terms)
        rank = f"bm25(modes, 0, {', '.join(map(str, _WEIGHTS))})"
        found = self._db.execute(
            f"SELECT id, {rank} FROM modes WHERE modes MATCH ? ORDER BY 2, id LIMIT ?", (query, limit)
        ).fetchall()
        hits = []
        for name, score in found:
            held = sum(
                bool(
                    self._db.execute("SELECT 1 FROM modes WHERE modes MATCH ? AND id = ?", (f'"{t}"', name)).fetchone()
                )
                for t in terms
            )
            hits.append(Hit(name, self._titles[name], -float(score), held / len(terms)))
        return hits


def _row(name: str, entry: dict[str, Any], signs: Any) -> tuple[str, ...]:
    meanings = [signs.get(s["sign"], {}).get("meaning", "") for s in entry.get("signs", ()) if s["weight"] > 0]
    fixes = [f.get("do", "") for f in entry.get("fixes", ())]
    return (
        name,
        f"{name.replace('-', ' ')} {entry['title']}",
        " . ".join(entry.get("phrases", ())),
        " ".join(a.replace("-", " ") for a in entry.get("aliases", ())),
        entry["mechanism"],
        " ".join(meanings),
        " ".join(fixes),
    )


def nearest(known: Catalogue, name: str, limit: int = 3) -> Sequence[str]:
    """The ids and aliases that look most like ``name``, as ids."""
    names = {n: n for n in (*known.mode_ids, *known.sign_ids, *known.rules)} | dict(known.aliases)
    close = difflib.get_close_matches(name.lower().replace("_", "-"), list(names), n=limit * 2, cutoff=0.5)
    return list(dict.fromkeys(names[c] for c in close))[:limit]
