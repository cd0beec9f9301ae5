"""The table of checkpoints: rows are consistent, ids are found in any case and by their short names."""

from __future__ import annotations

from trainwreck.catalogue.hub import ALIASES, checkpoint, checkpoints


def test_rows_are_consistent() -> None:
    assert len(checkpoints()) > 250
    for row in checkpoints().values():
        assert row.kind in ("base", "instruct", "tuned"), row.id
        if row.heads is not None and row.kv_heads is not None:
            assert row.heads % row.kv_heads == 0, row.id
        assert row.positions is None or 64 <= row.positions <= 10**7, row.id


def test_an_id_is_found_in_any_case_and_without_its_owner() -> None:
    assert checkpoint("gpt2") is checkpoint("openai-community/GPT2")
    assert checkpoint("bert-base-uncased") is not None
    assert checkpoint("./out/checkpoint-500") is None


def test_short_names_lead_to_rows() -> None:
    known = [name for name in ALIASES if checkpoint(name) is not None]
    assert len(known) >= len(ALIASES) // 2


def test_decoders_have_learned_or_rotary_positions_and_no_padding_where_it_matters() -> None:
    row = checkpoint("gpt2")
    assert row is not None
    assert row.decoder
    assert row.positions == 1024
    assert row.pad_token is False
    assert "c_attn" in row.linear_layers
