"""The page in a real browser: quiet, offline, readable without scripts, curves marked at the evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import headless_chromium
import pytest
import report_samples as samples

from trainwreck import report
from trainwreck.core.results import Chart, Result


def written(folder: Path, result: Result, name: str = "report.html") -> Path:
    page = folder / name
    page.write_text(report.render(result, "html"), encoding="utf-8")
    return page


def test_the_page_names_no_other_address_and_forbids_loading() -> None:
    page = report.render(samples.silent(), "html")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    outside = set(
        re.findall(
            r"(?:src|href|action|url)\s*[=(]\s*[\"']?(\w[^\"')\s>]*)",
            re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL),
        )
    )
    assert not outside
    assert " style=" not in page.split("<script", 1)[0]


def test_a_page_with_many_curves_stays_small() -> None:
    steps = [float(i) for i in range(400)]
    charts = [
        Chart(f"metric/{n}", "loss", "step", "run", steps, [1.2345678 * i**0.37 + n for i in range(400)])
        for n in range(24)
    ]
    assert len(report.render(Result(charts=charts), "html").encode()) < 300_000


def test_modules_are_drawn_by_step_and_the_broken_ones_are_never_left_out() -> None:
    page = report.render(samples.recorded(), "html")
    section = page[page.index('id="modules"') : page.index("Memory after backward")]
    first, second = section.split('<figure class="heat">')[1:]
    assert first.count('<svg class="cells"') == second.count('<svg class="cells"') == 32
    assert "8 modules that changed less are left out" in first
    assert '<path class="hbad" d="M11 0h1v1h-1z"/>' in first
    assert '<path class="hzero" d="M0 0h1v1h-1z"/>' in second
    assert "blocks.7." in first
    assert "900 MiB at most, 800 MiB at the end" in section
    assert len(page.encode()) < 260_000


@pytest.fixture(scope="module")
def browser() -> Iterator[headless_chromium.Chromium]:
    if headless_chromium.BINARY is None:
        pytest.skip("no Chromium on this machine: the report is not looked at")
    with headless_chromium.Chromium() as started:
        yield started


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["silent", "crash", "healthy", "partial", "recorded"])
def test_no_complaint_and_no_request_in_either_scheme(
    browser: headless_chromium.Chromium, tmp_path: Path, kind: str
) -> None:
    page = written(tmp_path, getattr(samples, kind)())
    for dark in (False, True):
        for width in (1280, 390):
            browser.open(page, dark=dark, width=width)
            assert browser.complaints() == []
            assert browser.requests() == []
            assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_the_curves_come_alive_and_can_be_put_on_a_log_axis(
    browser: headless_chromium.Chromium, tmp_path: Path
) -> None:
    browser.open(written(tmp_path, samples.silent()))
    assert browser.evaluate("document.querySelectorAll('.live canvas').length") == 4
    assert browser.evaluate("getComputedStyle(document.querySelector('.plot')).display") == "none"
    first = "document.querySelector('.curve .tools button')"
    before = browser.evaluate(f"{first}.getAttribute('aria-pressed')")
    browser.evaluate(f"{first}.click()")
    browser.evaluate("document.querySelectorAll('.curve .tools button')[1].click()")
    assert {before, browser.evaluate(f"{first}.getAttribute('aria-pressed')")} == {"true", "false"}
    assert browser.complaints() == []


@pytest.mark.browser
def test_the_pointer_reads_values_and_dragging_zooms(browser: headless_chromium.Chromium, tmp_path: Path) -> None:
    browser.open(written(tmp_path, samples.silent()), height=2400)
    box = "document.querySelector('.live .u-over').getBoundingClientRect()"
    left, top, width = (browser.evaluate(f"{box}.{side}") for side in ("left", "top", "width"))

    def mouse(kind: str, part: float) -> None:
        place = {"x": left + part * width, "y": top + 80}
        browser.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **place)
        browser.settle(0.1)

    said = "document.querySelector('.curve .figures').textContent"
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 0.25 * width, y=top + 80)
    browser.settle(0.2)
    assert re.match(r"step \d+ · [\d.]+$", browser.evaluate(said))
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 0.9 * width, y=top + 80)
    browser.settle(0.2)
    assert browser.evaluate(said).endswith("not finite")
    for kind, part in (("mousePressed", 0.5), ("mouseMoved", 0.6), ("mouseMoved", 0.7), ("mouseReleased", 0.7)):
        mouse(kind, part)
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 2, y=top + 80)
    browser.settle(0.2)
    first_step = re.match(r"step (\d+)", browser.evaluate(said))
    assert first_step is not None
    assert int(first_step[1]) > 900
    assert browser.complaints() == []


@pytest.mark.browser
def test_without_scripts_text_curves_and_marks_are_there(browser: headless_chromium.Chromium, tmp_path: Path) -> None:
    browser.open(written(tmp_path, samples.silent()), script=False)
    text = browser.evaluate("document.body.innerText")
    for part in (
        "Learning rate too high",
        "high (0.93)",
        "configs/lm-350m.yaml:14",
        "Lower the peak learning rate",
        "lr: 3.0e-3",
        "step 1240",
    ):
        assert part in text
    assert browser.evaluate("document.querySelectorAll('.curve .area path.line').length") == 4
    assert browser.evaluate("document.querySelectorAll('.mark circle').length") == 3
    assert browser.evaluate("document.querySelector('.curve .area').getBoundingClientRect().height") > 100
    assert browser.evaluate("document.querySelectorAll('.row.hit').length") == 1
    assert browser.evaluate("document.querySelectorAll('button').length") == 0


@pytest.mark.browser
def test_the_answer_can_be_taken_out_again(browser: headless_chromium.Chromium, tmp_path: Path) -> None:
    browser.open(written(tmp_path, samples.silent()))
    assert (
        browser.evaluate("JSON.parse(document.getElementById('answer').textContent).root_causes[0].id") == "lr-too-high"
    )


@pytest.mark.browser
def test_hostile_text_runs_nothing(browser: headless_chromium.Chromium, tmp_path: Path) -> None:
    from test_report_safety import poisoned

    for number, text in enumerate(
        ("</script><script>document.title='owned'</script>", '"><img src=x onerror="document.title=\'owned\'">')
    ):
        browser.open(written(tmp_path, poisoned(text), f"hostile-{number}.html"))
        assert "owned'" in browser.evaluate("document.body.innerText")
        assert browser.evaluate("document.title") != "owned"
        assert browser.complaints() == []
        assert browser.requests() == []
