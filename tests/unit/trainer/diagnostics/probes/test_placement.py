from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.placement import NoDeviceError
from trainer.diagnostics.probes.verdict import Device


def pretend(monkeypatch: pytest.MonkeyPatch, build: str, cards: int) -> None:
    """A torch built for `build` that sees `cards` of them."""
    monkeypatch.setattr(torch.version, "hip", "6.3.42131" if build == "rocm" else None)
    monkeypatch.setattr(torch.version, "cuda", "12.4" if build == "cuda" else None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cards > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    properties = SimpleNamespace(name="AMD Radeon RX 7900 XT", gcnArchName="gfx1100", major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)


@pytest.mark.parametrize(
    ("build", "cards", "expect", "kind", "arch"),
    [
        ("rocm", 2, "any", "rocm", "gfx1100"),
        ("rocm", 1, "rocm", "rocm", "gfx1100"),
        ("cuda", 1, "cuda", "cuda", "sm_90"),
        ("cuda", 1, "any", "cuda", "sm_90"),
    ],
)
def test_card_is_taken_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, build: str, cards: int, expect: str, kind: str, arch: str
) -> None:
    pretend(monkeypatch, build, cards)
    device = placement.place(expect)
    assert (device.kind, device.arch, device.torch_type) == (kind, arch, "cuda")


@pytest.mark.parametrize(
    ("build", "cards", "expect"), [("cpu", 0, "any"), ("cpu", 0, "cpu"), ("rocm", 0, "any"), ("rocm", 2, "cpu")]
)
def test_cpu_is_taken_where_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, build: str, cards: int, expect: str
) -> None:
    pretend(monkeypatch, build, cards)
    device = placement.place(expect)
    assert (device.kind, device.torch_type) == ("cpu", "cpu")
    assert device.name


@pytest.mark.parametrize(
    ("build", "cards", "expect", "reason"),
    [
        ("rocm", 0, "rocm", "No rocm card"),
        ("cuda", 0, "cuda", "No cuda card"),
        ("cpu", 0, "rocm", "this torch is built for cpu"),
        ("cuda", 1, "rocm", "this torch is built for cuda"),
        ("rocm", 1, "cuda", "this torch is built for rocm"),
    ],
)
def test_expected_card_that_is_not_there_is_no_device(
    monkeypatch: pytest.MonkeyPatch, build: str, cards: int, expect: str, reason: str
) -> None:
    pretend(monkeypatch, build, cards)
    with pytest.raises(NoDeviceError, match=reason) as raised:
        placement.place(expect)
    assert raised.value.versions["torch"] == torch.__version__


def test_reason_is_read_from_the_device_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, other = tmp_path / "kfd", tmp_path / "dxg"
    assert "there is no" in placement.why_no_card("rocm", node, other)
    other.touch()
    assert "this is WSL" in placement.why_no_card("rocm", node, other)
    node.touch()
    assert "HIP_VISIBLE_DEVICES" in placement.why_no_card("rocm", node)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "may not read and write" in placement.why_no_card("rocm", node)
    assert placement.why_no_card("cuda", node) == "torch sees none"


def test_missing_torch_is_noticed_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert placement.has_torch()
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "torch")
    assert not placement.has_torch()


@pytest.mark.parametrize(
    ("kind", "arch", "own"),
    [
        ("rocm", "gfx906:sramecc+:xnack-", False),
        ("rocm", "gfx1030", False),
        ("rocm", "gfx1010", False),
        ("rocm", "gfx1100", True),
        ("rocm", "gfx90a:sramecc+", True),
        ("rocm", "gfx9999", True),  # not known: as torch says
        ("cuda", "sm_90", True),
        ("cpu", "x86_64", False),
    ],
)
def test_bf16_follows_the_architecture_and_not_what_torch_answers_for_every_rocm_build(
    monkeypatch: pytest.MonkeyPatch, kind: Any, arch: str, own: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    device = Device(kind=kind, name="a card", arch=arch)
    assert placement.computes_bf16(device) == own
    assert ("bfloat16" in placement.dtypes(device)) == (own or kind == "cpu")
