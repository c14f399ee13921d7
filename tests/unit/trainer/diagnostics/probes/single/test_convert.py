from __future__ import annotations

import struct
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import convert
from trainer.diagnostics.probes.verdict import Verdict

ZEROING = """
    import sys, torch
    from trainer.diagnostics.probes.single import convert
    from trainer.diagnostics.probes import entry

    def to_the_card(source, dtype, target):
        return torch.zeros_like(source, dtype=dtype)  # as drivers have done with a copy that also converts

    convert.ROUTES["on the way there"] = to_the_card
    sys.exit(entry.main("convert", convert.measure))
"""


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


def test_cpu_passes_by_every_route_and_reports_that_no_card_was_tried() -> None:
    verdict = convert.measure(Request(expect="cpu"))
    assert verdict.status == "pass", failed(verdict)
    assert "no card was tried" in verdict.summary
    assert len(verdict.checks) == 6 * 4


def test_conversion_that_gives_zeros_fails_through_the_runner(make_probe: Any) -> None:
    verdict = runner.run(make_probe(ZEROING, name="convert"), "cpu")
    assert verdict.status == "fail"
    assert len(failed(verdict)) == 6
    assert all(name.endswith("on the way there") for name in failed(verdict))
    (check,) = [check for check in verdict.checks if check.name == "float32 to bfloat16 on the way there"]
    assert check.detail.endswith("of them zeros")
    assert check.measured > convert.COUNT  # type: ignore[operator]


def test_rounding_towards_zero_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def truncate(source: torch.Tensor, dtype: torch.dtype, target: str) -> torch.Tensor:
        if (source.dtype, dtype) != (torch.float32, torch.bfloat16):
            return source.to(dtype)
        return (source.view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)

    monkeypatch.setitem(convert.ROUTES, "on the device", truncate)
    assert failed(convert.measure(Request(expect="cpu"))) == ["float32 to bfloat16 on the device"]


def test_subnormals_that_become_zero_are_counted_and_not_held_against_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    def flush(source: torch.Tensor, dtype: torch.dtype, target: str) -> torch.Tensor:
        found = source.to(dtype)
        return torch.where(found.abs() < torch.finfo(dtype).tiny, torch.zeros_like(found).copysign(found), found)

    monkeypatch.setitem(convert.ROUTES, "on the device", flush)
    verdict = convert.measure(Request(expect="cpu"))
    assert verdict.status == "pass", failed(verdict)
    assert next(n.value for n in verdict.numbers if n.name == "subnormals flushed to zero") > 1000


@pytest.mark.parametrize("value", [0.0, 1.0, 65504.0, 2.0**-24, 3.1415927, 2.0**-14, 1e-5, -7.25])
def test_definition_agrees_with_pythons_own_fp16(value: float) -> None:
    (pattern,) = struct.unpack("<h", struct.pack("<e", value))
    exact = convert.exact(torch.tensor([value], dtype=torch.float32), torch.float16)
    assert int(exact.view(torch.int16)[0]) == pattern
