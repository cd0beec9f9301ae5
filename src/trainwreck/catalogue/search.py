"""Find failure modes by words: a ranked index (bm25) over the catalogue, and the nearest ids for a misspelt one."""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trainwreck.catalogue.load import Catalogue

_WORD = re.compile(r"[a-z0-9]{2,}")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_STOP = frozenset(
    re.findall(
        r"\w+",
        "the a an and or of to in on at is are was were be by for with from it its this that as not no does do my our "
        "i we you than then when while after before during has have had but so if into over very only all any some "
        "more most",
    )
)
_ENDINGS: Sequence[str] = re.findall(r"\w+", "ations ation ingly edly ing ies ied ness ments ment ed es ly s er or al")
"""The first that fits is cut, where three letters remain."""
_SAME: Mapping[str, str] = {
    word: chosen
    for chosen, words in {
        "eval": "validation val evaluation evaluate evaluating test testing",
        "lr": "lrs",
        "memory": "oom",
        "gpu": "vram card cards gpus cuda",
        "fail": "crash crashes crashed error errors dies fails failed",
        "checkpoint": "ckpt ckpts checkpoints",
        "gradient": "grad grads gradients",
        "parameter": "param params parameters",
        "distributed": "ddp distributeddataparallel",
        "half": "fp16 float16",
        "bf16": "bfloat16",
        "image": "img imgs images picture pictures photo photos",
        "hang": "hangs stuck freezes hanging stalls",
        "fall": "decreases decrease drops drop decreasing falls",
        "same": "identical equal",
        "resume": "resuming resumed restart restarting restarted resumes",
        "nan": "nans",
    }.items()
    for word in words.split()
}
"""Words that people use for one another. The word itself stays as it is, so both sides meet in it."""
_CHOSEN = frozenset(_SAME.values())
_PHRASES = (("learning rate", "lr"), ("out of memory", "oom"), ("not a number", "nan"))
_WEIGHTS: Mapping[str, float] = {
    "title": 6.0,
    "phrases": 5.0,
    "aliases": 4.0,
    "mechanism": 2.0,
    "signs": 1.5,
    "fixes": 0.5,
}
"""A title or a user's own phrase tells more than a mechanism, which tells more than a fix."""
SATURATION = 4.0
"""bm25's k1. Counts are weighted sums here (one word of a title counts 6), so that the usual 1.2 would make all
fields equal; 4 was best on issue reports that nobody wrote the catalogue for."""
LENGTH = 0.4
"""bm25's b: a long entry is mostly a well described one, no repetitive one."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A failure mode that the words fit. ``score`` grows with the fit (bm25); ``share`` is the part of the words asked
    for that the entry holds."""

    id: str
    title: str
    score: float
    share: float


class Index:
    """A word index in memory, built in some tens of milliseconds; ``index`` keeps the one of a catalogue."""

    def __init__(self, known: Catalogue) -> None:
        signs, modes = known.raw("signs"), known.raw("modes")
        self._titles = {name: entry["title"] for name, entry in modes.items()}
        counts: dict[str, dict[str, float]] = {}
        lengths: dict[str, float] = {}
        for name in sorted(modes):
            held: dict[str, float] = {}
            for field, text in _fields(name, modes[name], signs):
                for word, times in Counter(words_of(text)).items():
                    held[word] = held.get(word, 0.0) + _WEIGHTS[field] * times
            counts[name] = held
            lengths[name] = sum(held.values())
        usual = sum(lengths.values()) / max(len(lengths), 1)
        entries = Counter(word for held in counts.values() for word in held)
        total = len(counts)
        self._postings: dict[str, list[tuple[str, float]]] = {}
        for name, held in counts.items():
            damp = SATURATION * (1 - LENGTH + LENGTH * lengths[name] / usual)
            for word, count in held.items():
                rarity = math.log(1 + (total - entries[word] + 0.5) / (entries[word] + 0.5))
                value = rarity * count * (SATURATION + 1) / (count + damp)
                self._postings.setdefault(word, []).append((name, value))

    def search(self, words: str, limit: int = 10) -> list[Hit]:
        """Modes that fit ``words``, best first. Any text is allowed."""
        terms = list(dict.fromkeys(words_of(words)))[:64]
        scores: dict[str, float] = {}
        held: Counter[str] = Counter()
        for term in terms:
            for name, value in self._postings.get(term, ()):
                scores[name] = scores.get(name, 0.0) + value
                held[name] += 1
        best = sorted(scores, key=lambda name: (-scores[name], name))[:limit]
        return [Hit(name, self._titles[name], scores[name], held[name] / len(terms)) for name in best]


@lru_cache(maxsize=2)
def index(known: Catalogue) -> Index:
    """The index of a catalogue, built once."""
    return Index(known)


def words_of(text: str) -> list[str]:
    """The words of ``text`` as they are compared: identifiers taken apart, endings cut, synonyms joined."""
    plain = _HUMP.sub(" ", text).lower().replace("_", " ").replace("-", " ")
    for phrase, word in _PHRASES:
        plain = plain.replace(phrase, word)
    return [_root(word) for word in _WORD.findall(plain) if word not in _STOP]


@lru_cache(maxsize=20000)
def _root(word: str) -> str:
    word = _SAME.get(word, word)
    if word in _CHOSEN:
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word.rstrip("e") if len(word) > 4 else word


def _fields(name: str, entry: Mapping[str, Any], signs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "title", f"{name.replace('-', ' ')} {entry['title']}"
    yield "phrases", " . ".join(entry.get("phrases", ()))
    yield "aliases", " ".join(entry.get("aliases", ()))
    yield "mechanism", entry["mechanism"]
    meanings = [signs.get(s["sign"], {}).get("meaning", "") for s in entry.get("signs", ()) if s["weight"] > 0]
    yield "signs", " ".join(meanings)
    yield "fixes", " ".join(f.get("do", "") for f in entry.get("fixes", ()))


def nearest(known: Catalogue, name: str, limit: int = 3) -> Sequence[str]:
    """The ids and aliases that look most like ``name``, as ids."""
    names = {n: n for n in (*known.mode_ids, *known.sign_ids, *known.rules)} | dict(known.aliases)
    close = difflib.get_close_matches(name.lower().replace("_", "-"), list(names), n=limit * 2, cutoff=0.5)
    return list(dict.fromkeys(names[c] for c in close))[:limit]
