"""Split the developer corpus: two thirds to tune on, one third held back, by a hash of the id.

    python tools/holdout.py SHARED OUT

makes OUT/tune and OUT/held, each with errors.jsonl, repros/, logs/ (links into SHARED) that the scorers take.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
import sys
from pathlib import Path


def held_back(name: str) -> bool:
    """True for a third of all ids, the same ones on every machine."""
    return int(hashlib.sha1(name.encode()).hexdigest(), 16) % 3 == 0


def main(shared: Path, out: Path) -> None:
    for part, wanted in (("tune", False), ("held", True)):
        target = out / part
        shutil.rmtree(target, ignore_errors=True)
        (target / "repros").mkdir(parents=True)
        (target / "logs").mkdir()
        (target / "cases").mkdir()
        lines = (shared / "corpus/errors.jsonl").read_text(encoding="utf-8").splitlines()
        chosen = [line for line in lines if held_back(json.loads(line)["id"]) == wanted]
        (target / "errors.jsonl").write_text("".join(line + "\n" for line in chosen), encoding="utf-8")
        for kind, source in (
            ("repros", shared / "corpus/repros"),
            ("logs", shared / "corpus/logs"),
            ("cases", shared / "cases"),
        ):
            for folder in sorted(p for p in source.iterdir() if p.is_dir()):
                if held_back(folder.name) == wanted:
                    (target / kind / folder.name).symlink_to(folder.resolve())
        with (shared / "corpus/logs/MANIFEST.tsv").open(encoding="utf-8") as lines_in:
            rows = list(csv.reader(lines_in, delimiter="\t", quoting=csv.QUOTE_NONE))
        kept = [rows[0], *(r for r in rows[1:] if held_back(r[0]) == wanted)]
        (target / "logs/MANIFEST.tsv").write_text("".join("\t".join(r) + "\n" for r in kept), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
