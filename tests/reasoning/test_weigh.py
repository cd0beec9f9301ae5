"""The reasoning, on small catalogues made for the purpose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwreck.catalogue.load import Catalogue
from trainwreck.core.evidence import Evidence, EvidenceClass, Where
from trainwreck.reasoning.diagnose import diagnose


def mode(name: str, signs: dict[str, float], **more: Any) -> dict[str, Any]:
    conclusive = more.pop("conclusive", ())
    absent = more.pop("absent", {})
    return {
        "id": name,
        "title": name,
        "family": "test",
        "mechanism": "made for a test",
        "signs": [
            {"sign": s, "weight": w, "conclusive": s in conclusive, "absent": absent.get(s, 0.0)}
            for s, w in signs.items()
        ],
        **more,
    }


def book(
    *modes: dict[str, Any], signs: dict[str, list[str]] | None = None, families: dict[str, str] | None = None
) -> Catalogue:
    needs = signs or {}
    names = {s["sign"] for m in modes for s in m["signs"]} | set(needs)
    table = {n: {"id": n, "meaning": n, "family": (families or {}).get(n, n), "needs": needs.get(n, [])} for n in names}
    asked = {"grad-norm": {"id": "grad-norm", "name": "the gradient norm"}}
    entries = {m["id"]: m for m in modes}
    return Catalogue({"needs": asked, "signs": table, "signatures": [], "rules": {}, "modes": entries})


def seen(sign: str, cls: EvidenceClass = "direct", line: int = 1) -> Evidence:
    return Evidence(sign, cls, f"{sign} was seen", Where("log", path="a.log", line=line))


def test_nothing_seen_is_no_diagnosis() -> None:
    assert not diagnose([], book(mode("a", {"x": 3.0}))).causes


def test_a_conclusive_sign_beats_many_hints() -> None:
    known = book(mode("proved", {"p": 3.0}, conclusive=("p",)), mode("hinted", {"p": 0.5, "q": 2.0, "r": 2.0}))
    causes = diagnose([seen("p"), seen("q"), seen("r")], known).causes
    assert causes[0].id == "proved"
    assert causes[0].confidence > 0.9


def test_evidence_against_lowers_confidence() -> None:
    known = book(mode("a", {"x": 4.0, "y": -2.0}))
    alone = diagnose([seen("x")], known).causes[0]
    contradicted = diagnose([seen("x"), seen("y")], known).causes[0]
    assert contradicted.confidence < alone.confidence
    assert [e.sign for e in contradicted.against] == ["y"]


def test_an_absent_sign_counts_only_where_it_could_be_seen() -> None:
    known = book(mode("a", {"x": 4.0, "z": 2.0}, absent={"z": -2.0}), signs={"z": ["grad-norm"]})
    blind = diagnose([seen("x")], known).causes[0]
    looked = diagnose([seen("x")], known, frozenset({"grad-norm"})).causes[0]
    assert looked.confidence < blind.confidence


def test_modes_that_lean_on_one_sighting_are_rivals() -> None:
    causes = diagnose([seen("x")], book(mode("a", {"x": 4.0}), mode("b", {"x": 3.8}))).causes
    assert [c.role for c in causes] == ["root", "rival"]
    assert sum(c.confidence for c in causes) < 1.0


def test_independent_faults_stand_side_by_side() -> None:
    causes = diagnose([seen("x"), seen("y")], book(mode("a", {"x": 5.0}), mode("b", {"y": 5.0}))).causes
    assert [c.role for c in causes] == ["root", "root"]


def test_a_known_consequence_is_no_second_root() -> None:
    known = book(mode("cause", {"x": 5.0}, leads_to=["effect"]), mode("effect", {"y": 5.0}))
    answer = diagnose([seen("x"), seen("y")], known)
    assert {c.id: c.role for c in answer.causes} == {"cause": "root", "effect": "consequence"}
    assert list(answer.chain) == ["cause", "effect"]


def test_how_the_curves_go_follows_from_a_fault_that_was_seen_at_work() -> None:
    modes = [mode("wired", {"event": 5.0}, conclusive=("event",)), mode("rate", {"rises": 3.0})]
    families = {"event": "live", "rises": "loss"}
    assert {c.id: c.role for c in diagnose([seen("event"), seen("rises")], book(*modes, families=families)).causes} == {
        "wired": "root",
        "rate": "consequence",
    }
    crash = book(*modes, families=families | {"event": "errors"})
    assert [c.role for c in diagnose([seen("event"), seen("rises")], crash).causes] == ["root", "root"]


def test_what_the_code_proves_of_a_line_at_which_the_run_went_wrong_comes_first() -> None:
    code = Evidence("code-exact", "direct", "proven", Where("code", path="train.py", line=7))
    event = Evidence("live-cut", "direct", "cut off", Where("code", path="train.py", line=7))
    elsewhere = Evidence("live-cut", "direct", "cut off", Where("code", path="train.py", line=9))
    known = book(mode("exact", {"code-exact": 3.5}), mode("general", {"live-cut": 4.0}))
    assert [(c.id, c.role) for c in diagnose([code, event], known).causes] == [("exact", "root"), ("general", "root")]
    assert diagnose([code, elsewhere], known).causes[0].id == "general"


def test_inference_alone_never_claims_more_than_the_ceiling() -> None:
    known = book(mode("a", {"x": 9.0}, conclusive=("x",)))
    assert diagnose([seen("x", "inferred")], known).causes[0].confidence <= 0.7
    assert diagnose([seen("x", "circumstantial")], known).causes[0].confidence <= 0.9


def test_an_unproven_mode_stays_modest() -> None:
    known = book(mode("a", {"x": 9.0}, conclusive=("x",), maturity="preview"))
    assert diagnose([seen("x")], known).causes[0].confidence <= 0.65


def test_an_open_question_names_what_would_settle_it() -> None:
    known = book(mode("a", {"x": 3.2, "z": 2.0}), mode("b", {"x": 3.0}), signs={"z": ["grad-norm"]})
    missing = diagnose([seen("x")], known).missing
    assert [m.artefact for m in missing] == ["the gradient norm"]
    assert "a" in missing[0].why


def test_a_static_suspicion_counts_less_than_the_run() -> None:
    known = book(mode("a", {"code-a": 4.0}), mode("b", {"x": 4.0}))
    code = Evidence("code-a", "direct", "in the code", Where("code", path="t.py", line=3))
    causes = diagnose([code, seen("x")], known).causes
    assert causes[0].id == "b"
    assert all(c.confidence < causes[0].confidence for c in causes[1:])


def test_the_place_to_fix_is_the_one_that_the_code_shows() -> None:
    known = book(mode("a", {"x": 4.0}))
    surfaced = Evidence("x", "direct", "crash", Where("code", path="t.py", line=58))
    made = Evidence("code-a", "circumstantial", "made here", Where("code", path="t.py", line=25))
    location = diagnose([surfaced, made], known).causes[0].location
    assert location is not None
    assert location.line == 25


@pytest.mark.parametrize("times", [1, 5])
def test_the_same_sighting_many_times_proves_no_more(times: int) -> None:
    known = book(mode("a", {"x": 3.5}))
    many = diagnose([seen("x", line=i) for i in range(times)], known).causes[0]
    assert many.confidence == diagnose([seen("x")], known).causes[0].confidence


@given(st.permutations(["x", "y", "z", "x"]))
def test_order_of_evidence_does_not_matter(order: list[str]) -> None:
    known = book(mode("a", {"x": 3.0, "y": 1.0}), mode("b", {"y": 3.0, "z": -1.0}), mode("c", {"z": 4.0}))
    answer = diagnose([seen(s) for s in order], known)
    expected = diagnose([seen(s) for s in ("x", "x", "y", "z")], known)
    assert [(c.id, c.role, c.confidence) for c in answer.causes] == [
        (c.id, c.role, c.confidence) for c in expected.causes
    ]


def test_a_fault_of_the_code_comes_before_what_only_curves_say() -> None:
    curves = mode("vanishing", {"norm-vanishes": 4.2}, severity="critical")
    written = mode("reversed", {"code-reversed": 3.5}, severity="critical")
    known = book(curves, written, families={"norm-vanishes": "gradient", "code-reversed": "code"})
    code = Evidence("code-reversed", "direct", "written here", Where("code", path="a.py", line=3))
    told = diagnose([seen("norm-vanishes"), code], known).causes
    assert [c.id for c in told] == ["reversed", "vanishing"]
    assert [c.role for c in told] == ["root", "consequence"]
    weaker = mode("reversed", {"code-reversed": 3.5}, severity="warning")
    known = book(curves, weaker, families={"norm-vanishes": "gradient", "code-reversed": "code"})
    assert diagnose([seen("norm-vanishes"), code], known).causes[0].id == "vanishing"
