"""Text from files, made harmless for the place where it is shown. Nothing that was read is trusted."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]")
# C0 and C1 controls, soft hyphen, bidirectional and other invisible format characters, line separators, surrogates,
# non-characters and tags: they move the cursor, reverse or hide what a reader sees.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U000e0000-\U000e0fff"
)
_CONTROL = re.compile(f"[{_HIDDEN}]")
_BREAKS = re.compile(r"\s*[\n\r\u2028\u2029\x85\x0b\x0c]+\s*")
_SPACES = re.compile(r"[ \t]{2,}|\t")


def visible(text: str) -> str:
    """``text`` (lines kept) without terminal codes; other hidden characters are spelled: ``\\u202e``."""
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    return _CONTROL.sub(_spelled, text.replace("\r\n", "\n"))


def line(text: str, limit: int = 2000) -> str:
    """``text`` as one harmless line: line ends and runs of blanks become one blank, cut after ``limit`` characters."""
    if len(text) > 4 * limit:
        text = text[: 4 * limit]
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    text = _SPACES.sub(" ", visible(_BREAKS.sub(" ", text)).replace("\n", " ")).strip()
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def source_line(text: str, limit: int = 300) -> str:
    """One line of a file: indentation kept, tabs as four blanks."""
    text = visible(text.rstrip("\n\r").replace("\t", "    ")).replace("\n", " ")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def json_text(serialised: str) -> str:
    """Serialised JSON with every hidden character written as an escape: the same object, harmless to print."""
    return _CONTROL.sub(_json_escape, serialised) if _CONTROL.search(serialised) else serialised


def encodable(text: str) -> str:
    """``text`` without lone surrogates (undecodable bytes of a file name), which no encoding can write."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def to_ascii(text: str) -> str:
    """The nearest ASCII text, for terminals that can show no more."""
    for fancy, plain in _ASCII:
        if fancy in text:
            text = text.replace(fancy, plain)
    return text.encode("ascii", "backslashreplace").decode("ascii")


_ASCII = (
    ("…", "..."), ("→", "->"), ("←", "<-"), ("·", "-"), ("–", "-"), ("—", "-"), ("×", "x"), ("≥", ">="), ("≤", "<="),
    ("≈", "~"), ("±", "+-"), ("µ", "u"), ("“", '"'), ("”", '"'), ("‘", "'"), ("’", "'"), ("\u00a0", " "), ("│", "|"),
    ("▶", ">"), ("└", "`"), ("├", "|"), ("─", "-"),
)  # fmt: skip


def _spelled(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
