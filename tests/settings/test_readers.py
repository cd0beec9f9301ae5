"""Configurations become located trees: right values, right places, and no text makes a reader raise or hang."""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwreck.code.settings.json_file import read_json
from trainwreck.code.settings.toml_file import read_toml
from trainwreck.code.settings.tree import MAX_SETTINGS, UNKNOWN, Node, document
from trainwreck.code.settings.yaml_file import read_yaml

KEYS = st.text("abcdefgh_", min_size=1, max_size=8)
SCALARS = st.one_of(
    st.booleans(), st.none(), st.integers(-(10**9), 10**9), st.text("ab cd:#-{}[]\"'é\n\t", max_size=12)
)
TREES = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False, width=32),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def plain(node: Node) -> Any:
    match node.kind:
        case "mapping":
            return {key.name: plain(value) for key, value in node.pairs}
        case "sequence":
            return [plain(item) for item in node.items]
    return node.value


@given(st.dictionaries(KEYS, TREES, max_size=5))
def test_json_is_read_as_python_reads_it(data: dict[str, Any]) -> None:
    for indent in (None, 2):
        node = read_json(json.dumps(data, indent=indent))
        assert node is not None
        assert plain(node) == data


@given(st.dictionaries(KEYS, TREES, max_size=5))
def test_yaml_is_read_as_pyyaml_reads_it(data: dict[str, Any]) -> None:
    text = yaml.safe_dump(data)
    node = read_yaml(text)
    assert node is not None
    assert plain(node) == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    [
        "1e-4",
        "1.0e-4",
        "1_000",
        "0x1F",
        "0o17",
        "017",
        "0b101",
        "yes",
        "No",
        "on",
        "~",
        "null",
        ".5",
        "1.",
        "-3",
        "'1'",
    ],
)
def test_scalars_are_those_of_pyyaml(text: str) -> None:
    node = read_yaml(f"a: {text}")
    assert node is not None
    assert plain(node) == yaml.safe_load(f"a: {text}")


def test_numbers_that_are_no_numbers_in_pyyaml_are_known_as_such() -> None:
    node = read_yaml("a: 1e-4\nb: .inf\nc: '2e-5'")
    assert node is not None
    found = document("c.yaml", "yaml", node).settings
    assert found[("a",)].value == "1e-4"
    assert found[("a",)].number == 1e-4
    assert not found[("a",)].quoted
    assert found[("b",)].number is None
    assert found[("c",)].quoted


@given(st.text(max_size=300))
@settings(max_examples=300)
def test_no_text_makes_a_reader_raise(text: str) -> None:
    for read in (read_yaml, read_json, read_toml):
        node = read(text)
        if node is not None:
            document("x", "yaml", node)


@given(st.lists(st.sampled_from("{}[]:,\"'&*! -\n\t#|>ab1.e<=%@`?"), max_size=60).map("".join))
@settings(max_examples=500)
def test_no_punctuation_makes_a_reader_raise(text: str) -> None:
    for read in (read_yaml, read_json, read_toml):
        read(text)


@given(st.dictionaries(KEYS, st.one_of(st.integers(0, 99), st.booleans(), st.text("abc", max_size=5)), max_size=6))
def test_toml_is_read_as_python_reads_it(data: dict[str, Any]) -> None:
    text = "[a.b]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in data.items())
    node = read_toml(text)
    assert node is not None
    assert plain(node) == tomllib.loads(text)


PLACED = [
    ("yaml", "a:\n  b: 1e-4 # why\nc: [1, 2]\n", ("a", "b"), 2, 6, 3),
    ("yaml", "base: &x {lr: 3}\nmine:\n  <<: *x\n", ("mine", "lr"), 1, 15, 11),
    ("json", '{"a": {\n  "b":   "auto"}}', ("a", "b"), 2, 10, 4),
    ("json", '// note\n{"a": [1, /* two */ 2,]}', ("a", "1"), 2, 21, 3),
    ("toml", '[t.u]\nkey = "v" # x\n', ("t", "u", "key"), 2, 7, 1),
    ("toml", "[[r]]\na=1\n[[r]]\na = 2\n", ("r", "1", "a"), 4, 5, 1),
]


@pytest.mark.parametrize(("language", "text", "keys", "line", "column", "key_column"), PLACED)
def test_every_value_has_its_place(
    language: str, text: str, keys: tuple[str, ...], line: int, column: int, key_column: int
) -> None:
    node = {"yaml": read_yaml, "json": read_json, "toml": read_toml}[language](text)
    assert node is not None
    setting = document("x", "yaml", node).settings[keys]
    assert (setting.place.line, setting.place.column) == (line, column)
    assert setting.key_place.column == key_column


def test_a_key_that_stands_twice_is_kept_with_both_places() -> None:
    node = read_yaml("lr: 1\nx:\n  <<: {lr: 5}\n  lr: 3\nlr: 2\n")
    assert node is not None
    found = document("x", "yaml", node)
    assert found.settings[("lr",)].value == 2
    assert [(keys, first.line, second.line) for keys, first, second in found.twice] == [(("lr",), 1, 5)]


def test_merge_keys_lose_against_what_is_written_and_lists_of_them_go_in_order() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc:\n  z: 3\n  <<: [*a, *b]\n"
    node = read_yaml(text)
    assert node is not None
    found = document("x", "yaml", node)
    wanted = yaml.safe_load(text)["c"]
    assert {keys[1]: s.value for keys, s in found.settings.items() if keys[0] == "c"} == wanted


def test_a_billion_laughs_is_left_alone() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert read_yaml("\n".join(rows)) is None


def test_an_anchor_inside_itself_is_left_alone() -> None:
    assert read_yaml("a: &a\n  b: *a\n") is None


def test_tags_are_unknown_and_not_obeyed() -> None:
    node = read_yaml(
        "a: !!python/object/apply:os.system ['exit 1']\nb: !env HOME\nc: !!python/name:os.system ''\nd: 1\n"
    )
    assert node is not None
    found = document("x", "yaml", node).settings
    assert all(found[(name,)].value is UNKNOWN for name in "abc")
    assert found[("d",)].value == 1


def test_deep_nesting_and_long_files_end() -> None:
    assert read_json("[" * 100_000) is None
    assert read_yaml("a: " + "[" * 5000) is None
    node = read_json("[" + ",".join(["1"] * 50_000) + "]")
    assert node is not None
    assert len(document("x", "json", node).settings) == MAX_SETTINGS


def test_unknown_equals_nothing() -> None:
    assert UNKNOWN != UNKNOWN
    assert not UNKNOWN
    assert math.isnan(float("nan"))
