from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import numerics, runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import transfer
from trainer.diagnostics.probes.verdict import Verdict

CORRUPTING = """
    import sys
    from trainer.diagnostics.probes import entry
    from trainer.diagnostics.probes.single import transfer
    honest = transfer.copy

    def copy(rows, target, **how):
        there = honest(rows, target, **how)
        there.view(-1)[4711] ^= 16  # one bit
        return there

    transfer.copy = copy
    sys.exit(entry.main("transfer", transfer.measure))
"""


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


def test_cpu_passes_and_reports_that_pinned_memory_was_not_tried() -> None:
    verdict = transfer.measure(Request(expect="cpu"))
    assert verdict.status == "pass", failed(verdict)
    assert "no card was tried" in verdict.summary
    assert [c.name for c in verdict.checks if c.status == "not-applicable"] == ["pinned contiguous", "pinned strided"]
    assert {number.unit for number in verdict.numbers} == {"", "GB/s"}


def test_bit_that_a_copy_flips_fails_through_the_runner(make_probe: Any) -> None:
    verdict = runner.run(make_probe(CORRUPTING, name="transfer"), "cpu")
    assert verdict.status == "fail"
    loop = next(check for check in verdict.checks if check.name == "loop with workers")
    assert loop.measured == transfer.ON_CPU.batches
    assert {"pageable contiguous to the device", "pageable strided to the device", "loop with workers"} <= set(
        failed(verdict)
    )


def test_checksum_sees_what_is_wrong_missing_or_moved() -> None:
    rows = transfer.block(transfer.ROW * 4, seed=3)
    right = numerics.checksum(rows)
    assert numerics.checksum(rows.clone()) == right
    for change in (lambda r: r.flip(0), lambda r: r.roll(1), torch.zeros_like, lambda r: r[:-1]):
        assert numerics.checksum(change(rows)) != right


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_layout_changes_the_memory_and_not_the_bytes(layout: str) -> None:
    rows = transfer.block(transfer.ROW * 2, seed=1)
    laid = transfer.laid_out(rows, layout, pinned=False)
    assert torch.equal(laid, rows)
    assert laid.is_contiguous() == (layout == "contiguous")
