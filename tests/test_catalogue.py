"""Every link of the catalogue leads somewhere, every entry is complete, every case is diagnosed."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from pathlib import Path

import pytest

from trainwreck.catalogue import compile as compiler
from trainwreck.catalogue.load import CODE_PREFIX, ROOT, catalogue, read
from trainwreck.catalogue.model import Mode
from trainwreck.engine import diagnose
from trainwreck.reasoning.resemble import SIGN as RESEMBLES
from trainwreck.reasoning.weigh import reaches

OWN = Path(__file__).parent / "cases"
KNOWN = catalogue()
MODES = KNOWN.modes()
SEVERITIES = {"critical", "warning", "suggestion"}
SCOPES = {"message", "line", "report"}


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.id)
def test_mode_is_complete(mode: Mode) -> None:
    assert mode.severity in SEVERITIES
    assert len(mode.mechanism.split()) >= 12
    assert mode.signs or mode.phrases
    assert mode.experiment
    assert mode.if_not
    assert mode.fixes
    for fix in mode.fixes:
        assert set(fix) >= {"do", "expect", "verify"}, "a fix says what to do, what to expect, how to verify"
    assert mode.references
    assert all(r.get("key") and r.get("says") for r in mode.references)
    assert mode.maturity in ("stable", "preview")
    assert mode.cases or mode.maturity == "preview", "no case: maturity must be preview"


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.id)
def test_links_of_a_mode_exist(mode: Mode) -> None:
    for entry in mode.signs:
        assert KNOWN.sign(entry.sign) is not None, f"unknown sign {entry.sign}"
        assert entry.absent <= 0
        assert not (entry.conclusive and entry.weight <= 0)
    for name in mode.leads_to:
        assert KNOWN.mode(name) is not None, f"leads_to unknown {name}"
        assert not reaches(name, mode.id, KNOWN), f"leads_to is cyclic through {name}"
    for name in mode.mistaken_for:
        assert KNOWN.resolve(name) is not None, f"mistaken_for unknown {name}"


def test_there_are_enough_modes_with_a_case() -> None:
    assert sum(m.maturity == "stable" for m in MODES) >= 100


def test_signatures_are_well_formed() -> None:
    assert len(KNOWN.signatures) >= 120
    for entry in KNOWN.signatures:
        where = f"{entry['family']}: {entry.get('sign')}"
        assert KNOWN.sign(entry["sign"]) is not None, f"{where}: unknown sign"
        assert entry.get("contains") or entry.get("all"), f"{where}: nothing to look for"
        scope = entry.get("scope", "message")
        assert SCOPES.issuperset([scope] if isinstance(scope, str) else scope), where
        for key in ("pattern", "frame"):
            if key in entry:
                re.compile(entry[key])


def test_every_sign_is_of_use() -> None:
    used = {entry.sign for mode in MODES for entry in mode.signs} | {RESEMBLES}
    idle = [n for n in KNOWN.sign_ids if n not in used and (meant := KNOWN.sign(n)) and not meant.symptom]
    assert not idle, "signs that no mode speaks of and that are not worth telling either"


def test_ids_and_aliases_agree_with_the_vocabulary(shared: Path) -> None:
    with (shared / "vocabulary.tsv").open(encoding="utf-8") as lines:
        rows = {r["id"]: r for r in csv.DictReader(lines, delimiter="\t")}
    aliases = {a: r["id"] for r in rows.values() for a in filter(None, r["aliases"].split(","))}
    for mode in MODES:
        assert mode.id not in aliases, f"{mode.id} is an alias of {aliases.get(mode.id)}"
        if mode.id in rows:
            # An ending from outside is both what a log shows and what explains it; the sign is called "…-message".
            assert rows[mode.id]["kind"] == "failure-mode" or rows[mode.id]["family"] == "log"
            assert rows[mode.id]["family"] == mode.family
            assert set(filter(None, rows[mode.id]["aliases"].split(","))) <= set(mode.aliases)
    for name in KNOWN.sign_ids:
        assert name not in aliases
        assert rows.get(name, {"kind": "sign"})["kind"] == "sign"


def test_compiled_and_checkout_catalogue_are_equal(tmp_path: Path) -> None:
    target = tmp_path / "catalogue.tsv"
    compiler.write(ROOT, target)
    built = read(target.read_text(encoding="ascii"))
    assert built["modes"] == dict(KNOWN.raw("modes"))
    assert built["signs"] == dict(KNOWN.raw("signs"))
    assert built["rules"] == dict(KNOWN.raw("rules"))
    assert built["signatures"][""] == list(KNOWN.signatures)


def test_a_changed_file_changes_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "signs").mkdir()
    (tmp_path / "signs/a.toml").write_text('[[sign]]\nid = "x"\nmeaning = "y"\n')
    before = compiler.fingerprint(tmp_path)
    (tmp_path / "signs/a.toml").write_text('[[sign]]\nid = "x"\nmeaning = "longer"\n')
    assert compiler.fingerprint(tmp_path) != before


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("id = ", "no valid TOML"), ("title = 'x'", "no id"), ("id = 'other'", "differs from the file name")],
)
def test_a_wrong_file_is_named_in_one_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "modes/data").mkdir(parents=True)
    (tmp_path / "modes/data/thing.toml").write_text(text)
    with pytest.raises(compiler.CatalogueError, match=f"modes/data/thing.toml.*{complaint}"):
        compiler.compile_tree(tmp_path)


OWN_CASES = sorted(p.parent for p in OWN.glob("*/case.toml"))


@pytest.mark.parametrize("folder", OWN_CASES, ids=lambda p: p.name)
def test_own_case_is_diagnosed(folder: Path) -> None:
    case = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    artefacts = [p for p in sorted(folder.iterdir()) if p.name != "case.toml"]
    assert artefacts
    assert case["made_by"]
    result = diagnose(artefacts)
    accepted = {case["cause"], *case.get("also", [])}
    assert accepted & {c.id for c in result.root_causes[:3]}, [c.id for c in result.root_causes]
    if "line" in case:
        cause = next(c for c in result.root_causes if c.id in accepted)
        path, _, line = case["line"].rpartition(":")
        assert cause.location is not None
        assert Path(cause.location.path).name == path
        assert abs((cause.location.line or 0) - int(line)) <= 2


def test_every_case_exists(shared: Path) -> None:
    errors = {json.loads(line)["id"] for line in (shared / "corpus/errors.jsonl").open(encoding="utf-8")}
    for mode in MODES:
        for case in mode.cases:
            kind, _, name = case.partition("/")
            if kind == "errors":
                assert name in errors, f"{mode.id}: {case}"
            elif kind in ("repros", "logs"):
                assert (shared / "corpus" / kind / name).is_dir(), f"{mode.id}: {case}"
            elif kind == "cases":
                assert (shared / "cases" / name).is_dir(), f"{mode.id}: {case}"
            else:
                assert kind == "own", f"{mode.id}: {case}"
                assert (OWN / name / "case.toml").exists(), f"{mode.id}: {case}"


def test_codes_prefix_is_what_the_design_says() -> None:
    assert CODE_PREFIX == "code-"


def test_a_file_that_was_cut_off_is_none() -> None:
    text = compiler.lines(compiler.compile_tree(ROOT))
    assert read(text)["modes"]
    for end in (0, 100, text.rindex("\n"), len(text) - 5):
        with pytest.raises((ValueError, KeyError)):
            read(text[:end])
