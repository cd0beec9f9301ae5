"""Text from files is untrusted in every format; secrets leave in none."""

from __future__ import annotations

import html.parser
import json
import re
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwreck import report
from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.redact import MASK, mask, masked
from trainwreck.core.results import (
    Cause,
    Chart,
    Excerpt,
    Finding,
    Fix,
    Location,
    Mark,
    Missing,
    Result,
    RunSummary,
    Suspect,
    Symptom,
)
from trainwreck.core.run import Setting
from trainwreck.report import artifacts, markdown, safe

# Assembled here so that no scanner takes this file for a leak.
HEX40 = "0123456789abcdef" * 2 + "01234567"
LETTERS = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
SECRETS = {
    "huggingface": "hf_" + LETTERS[:34],
    "openai": "sk-" + "proj-" + LETTERS,
    "anthropic": "sk-ant-" + LETTERS,
    "github": "ghp_" + LETTERS,
    "github fine": "github_pat_" + LETTERS,
    "aws": "AKIA" + "ABCDEFGHIJKLMNOP",
    "google": "AIza" + (LETTERS + "x")[:35],
    "slack": "xoxb-" + "123456789012-abcdefghij",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".abcDEF123_-xyz",
}


@pytest.mark.parametrize("kind", SECRETS)
def test_tokens_are_masked(kind: str) -> None:
    secret = SECRETS[kind]
    for text in (secret, f"login with {secret}.", f"TOKEN={secret}", f'{{"key": "{secret}"}}'):
        assert secret not in mask(text), text
        assert MASK in mask(text)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (f"wandb: api_key={HEX40}", HEX40),
        (f"WANDB_API_KEY={HEX40} python train.py", HEX40),
        (f"wandb login {HEX40}", HEX40),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
        ("password=hunter2!x", "hunter2!x"),
        ("db_password: 'correct horse'", "correct horse"),
        ('AWS_SECRET_ACCESS_KEY="wJalrXUtnFEMI/K7MDENG"', "wJalrXUtnFEMI"),
        ("--api-key 'abcd efgh'", "abcd efgh"),
        ("https://me:s3cret@host.example/x.git", "s3cret"),
        ("https://s3crettoken@github.com/x/y", "s3crettoken"),
        ("mail to jane.doe+x@uni-example.edu now", "jane.doe"),
        ("by root@node1.cluster.example.com:", "root@node1"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    ],
)
def test_keys_passwords_and_addresses_are_masked(text: str, gone: str) -> None:
    assert gone not in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        f"commit {HEX40}",
        "attn = q@k.transpose(-2, -1)",
        "y = x@self.weight.T + b",
        "/opt/homebrew/python@3.11/bin/python",
        "@torch.no_grad()",
        "tokenizer.pad_token = tokenizer.eos_token",
        "max_new_tokens: 256, num_tokens=1024, pad_token_id: 50256",
        "skip-this-long-option-name-please and task-specific-parameters-are-here",
        "File \"train.py\", line 3, in <module>\n    key = batch['key'][0]",
        "tokens/s 12345, token: <pad>",
        "secretary problem: password policy",
        "api_key = os.environ['WANDB_API_KEY']",
        "self._api_key = api_key",
        "login(token=args.hf_token, password=password)",
        "special_tokens_map_file=special_tokens_map.json",
    ],
)
def test_code_hashes_and_settings_stay_readable(text: str) -> None:
    assert mask(text) == text


@given(st.text(max_size=300))
def test_masking_never_raises_and_is_idempotent(text: str) -> None:
    once = mask(text)
    assert mask(once) == once


@pytest.mark.parametrize(
    "piece", ["a_", "a-", "key ", "x@", "a.", "hf_", "eyJ", "sk-", "://", "password", "token=", "\x1b]", "'"]
)
def test_masking_and_cleaning_take_linear_time(piece: str) -> None:
    text = piece * (65_536 // len(piece))
    start = time.process_time()
    safe.line(mask(text))
    assert time.process_time() - start < 2.0


def test_a_setting_with_a_secret_name_is_masked_whole() -> None:
    setting = Setting("hub.hf_token", "anything at all", Where("config"))
    assert masked(setting).value == MASK
    assert masked({"password": "x y", "lr": 0.1}) == {"password": MASK, "lr": 0.1}


def poisoned(text: str) -> Result:
    """An answer that holds ``text`` everywhere where text of a file can come to stand."""
    where = Where("log", path=text, line=3, column=1, step=2.0, metric=text, module=text, key=text)
    seen = Evidence("a-sign", "direct", text, where, text)
    cause = Cause(
        "some-mode",
        text,
        "root",
        None,
        "critical",
        0.5,
        (seen,),
        (seen,),
        Location(text, 2),
        text,
        Fix(text),
        text,
        text,
        text,
        (),
        text,
        (),
        {"other-mode": text},
    )
    rival = replace(cause, id="other-mode", role="rival")
    chart = Chart(text, "loss", "step", text, [1.0, 2.0, 3.0], [1.0, float("nan"), 2.0], [Mark(2.0, text, "a-sign")])
    return Result(
        root_causes=(cause, rival, replace(cause, id="third-mode")),
        findings=(Finding("a-rule", "code-a-rule", "warning", text, text, 1, proof=((text, 1, text),)),),
        symptoms=(Symptom("b-sign", text, where),),
        suspects=(Suspect(text, None, "undecided", (seen,)),),
        runs=(RunSummary(text, text, 1, 3.0, [text], text),),
        missing=(Missing(text, text),),
        quick_fixes=(text,),
        analysis_artifacts={"loss_visualization": text},
        charts=(chart,),
        excerpts=(Excerpt(text, 1, [text, text, text], [2], text),),
        chain=("some-mode", "other-mode"),
        unreadable=(text,),
        settings=(Setting(text, text, where),),
        read=(text,),
        observed=(text,),
    )


EVERYWHERE = [f for f in report.FORMATS if f not in ("json", "jsonl", "package")]
nasty = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x9b\x07\x00\r\n\t\u202e\u2066\u200b\u2028<>&\"'`[]()*_|#@!\\$~-={}/:%;.0m1"),
    ),
    max_size=60,
)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@settings(deadline=None, max_examples=25)
@given(nasty)
def test_no_format_lets_a_control_or_hidden_character_through(text: str) -> None:
    for form in report.FORMATS:
        written = report.render(poisoned(text), form)
        assert not HIDDEN.search(written), form
        written.encode("utf-8")
    for form in ("json", "package"):
        json.loads(report.render(poisoned(text), form))


numbers = st.lists(st.floats(), min_size=1, max_size=40)


@settings(deadline=None, max_examples=20)
@given(numbers, numbers, numbers)
def test_every_number_can_be_drawn(steps: list[float], values: list[float], marks: list[float]) -> None:
    size = min(len(steps), len(values))
    for order in (steps[:size], sorted(steps[:size], key=str)):
        chart = Chart("loss", "loss", "step", "run", order, values[:size], [Mark(m, "mark", "a-sign") for m in marks])
        seen = tuple(
            Evidence("a-sign", "direct", "seen", Where("metric", path="log", step=m, metric="loss"), m, end=m)
            for m in marks
        )
        result = replace(poisoned("text"), charts=(chart,))
        result = replace(result, root_causes=(replace(result.root_causes[0], evidence=seen),))
        for form in report.FORMATS:
            report.render(result, form)
        artifacts.gradient_analysis(replace(result, charts=(replace(chart, role="grad-norm"),)))


class Tags(html.parser.HTMLParser):
    """The structure of a page: its elements with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attrs)))


def structure(page: str) -> list[tuple[str, tuple[str, ...]]]:
    tags = Tags()
    tags.feed(page)
    return tags.seen


@settings(deadline=None, max_examples=25)
@given(nasty.filter(lambda t: bool(safe.line(t))))
def test_html_has_the_same_elements_whatever_a_file_says(text: str) -> None:
    assert structure(report.render(poisoned(text), "html")) == structure(report.render(poisoned("plain"), "html"))


@pytest.mark.parametrize(
    "text",
    [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "'\"><svg onload=alert(1)>",
        "{{ 7*7 }}",
        "<!-- x",
        "]]>",
    ],
)
def test_html_cannot_be_broken_out_of(text: str) -> None:
    page = report.render(poisoned(text), "html")
    assert structure(page) == structure(report.render(poisoned("plain"), "html"))
    assert "49" not in re.sub(r"<script.*?</script>|<style>.*?</style>|sha256-\S+", "", page, flags=re.DOTALL)


def test_rich_markup_is_only_text() -> None:
    assert "[bold red]not bold[/]" in report.render(poisoned("[bold red]not bold[/]"), "full", width=100)


@pytest.mark.parametrize(
    "text",
    [
        "[click](javascript:alert(1))",
        "![x](http://evil.example/p.png)",
        "<b>bold</b>",
        "`code` and ``more``",
        "a | b | c",
        "**bold** _it_ ~~s~~",
        "@octocat fixes #1",
        "see https://evil.example or www.evil.example",
        "# title",
        "- item",
        "1. item",
        "> quote",
        "$x^2$",
        "&lt;b&gt;",
    ],
)
def test_markdown_shows_text_letter_by_letter(text: str) -> None:
    written = markdown.escape(text)
    assert not re.search(r"(?<!\\)[`*_\[\]|~]|(?<!\\)<(?!!-- -->)", written)
    assert not re.search(r"@\w|#\d|https?:|www\.", written)
    assert not re.match(r"(#|-|>|\d+\.) ", written)


@given(nasty)
def test_inline_code_and_blocks_cannot_be_closed_from_inside(text: str) -> None:
    written = markdown.code(text)
    if written:
        fence = re.match(r"`+", written)
        assert fence is not None
        inner = written[len(fence.group()) : -len(fence.group())]
        assert fence.group() not in re.findall(r"`+", inner)
    rows = markdown.block([safe.source_line(text)])
    assert rows[0] == rows[2]
    assert rows[0] not in rows[1]


@given(st.text(max_size=200))
def test_a_line_is_one_line(text: str) -> None:
    assert len(safe.line(text).splitlines()) <= 1


@pytest.mark.parametrize("form", report.FORMATS)
def test_secrets_leave_in_no_format(form: str) -> None:
    secret = SECRETS["huggingface"]
    written = report.render(poisoned(f"login {secret} jane@example.org"), form)
    assert secret not in written
    assert "jane@" not in written
