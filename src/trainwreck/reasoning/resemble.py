"""What somebody wrote resembles what the catalogue says of a mode: weak evidence, for words that no signature knows.

Only descriptions by people are compared (standard input, symptoms), never a log: in ten thousand lines everything
resembles something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainwreck.catalogue.load import Catalogue
from trainwreck.core.evidence import Evidence, Where

SIGN = "report-resembles"
MAX_WORDS = 400
"""A longer text is a log, whoever pasted it."""
NUMBERS = 0.45
"""With so many numbers among its words a text is a piece of a log."""
HITS = 25
STRONGEST = 4.0
"""Log odds of the best hit whose words are all held by the entry. Best on issue reports that nobody wrote the catalogue
for, among 2 to 12; others get the square of their share of the best score."""


def resemblances(reports: Sequence[tuple[str, str]], known: Catalogue) -> Mapping[str, tuple[float, Evidence]]:
    """For each mode that a report resembles: a weight and the evidence. ``reports`` are short ones, (name, text)."""
    found: dict[str, tuple[float, Evidence]] = {}
    if not reports:
        return found
    from trainwreck.catalogue.search import index  # only words of people need it

    for name, text in reports:
        words = text.split()
        if sum(word.strip(",;()[]").replace(".", "", 1).isdigit() for word in words) >= NUMBERS * len(words):
            continue
        hits = index(known).search(text, limit=HITS)
        for hit in hits:
            relative = hit.score / hits[0].score
            weight = STRONGEST * relative**2 * min(1.0, 0.35 + hit.share)
            if hit.id in found and weight <= found[hit.id][0]:
                continue
            sentence = f"the description shares {round(100 * hit.share)}% of its words with this failure mode"
            where = Where("log", path=name)
            found[hit.id] = (weight, Evidence(SIGN, "inferred", sentence, where, value=round(relative, 2)))
    return found
