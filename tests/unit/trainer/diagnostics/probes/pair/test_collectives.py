"""A collective that a rank left out is found."""

from __future__ import annotations

from typing import Any

from trainer.diagnostics.probes.pair import collectives


def test_operation_that_a_rank_left_out_is_seen() -> None:
    one = {"phase": "all-reduce 1024 bytes", "operation": "all-reduce", "bytes": 1024, "wrong": 0, "seconds": 1e-3}
    reports: Any = [[one, {"phase": "done"}] for _ in range(2)]
    checks = collectives.sum_checks(reports, expected=2)
    assert [check.name for check in checks if check.status == "fail"] == ["operations left out"]
    (speed, _) = collectives.bandwidths(reports)
    assert (speed.value, speed.unit) == (0.001, "GB/s")
