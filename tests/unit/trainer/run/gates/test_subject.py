"""What the gates try follows from what the run computes."""

from __future__ import annotations

from tests.fixtures.footprints import SMALL
from trainer.run.gates.subject import MOST_TOKENS, WIDTH, Subject, subject_of

PLANNED = {"raw": SMALL, "adapter": "lora", "method": "sft", "rank": 8, "sequence": 256, "group": 3}


def test_decoder_gives_its_own_shapes() -> None:
    found = subject_of(PLANNED, rows=4, device="cuda:0", precision="bf16")
    assert (found.rows, found.tokens, found.width, found.inner) == (4, 256, 64, 192)
    assert (found.heads, found.kv_heads, found.head_dim, found.rank) == (4, 2, 16, 8)
    assert found.count == 1024


def test_pairs_are_two_rows_a_group_its_answers_and_a_run_without_adapter_has_no_rank() -> None:
    found = subject_of({**PLANNED, "method": "dpo", "adapter": "none"}, rows=4, device="cpu", precision="fp32")
    assert (found.rows, found.rank) == (8, 0)
    assert subject_of({**PLANNED, "method": "kto"}, rows=4, device="cpu", precision="fp32").rows == 12


def test_network_that_is_no_decoder_has_a_width_of_its_own() -> None:
    by_class = {**PLANNED, "adapter": "peft", "peft": {"peft_type": "IA3"}}
    assert (
        subject_of(by_class, rows=1, device="cpu", precision="bf16").heads
        == Subject(device="cpu", precision="bf16", rows=1).heads
    )
    assert subject_of(None, rows=32, device="cpu", precision="bf16") == Subject(
        device="cpu", precision="bf16", rows=32, width=WIDTH
    )


def test_products_that_are_tried_are_bounded() -> None:
    assert Subject(device="cpu", precision="bf16", rows=10**6, tokens=10**6).count == MOST_TOKENS
    assert Subject(device="cpu", precision="bf16", rows=0, tokens=5).count == 1
