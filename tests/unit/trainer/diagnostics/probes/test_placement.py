from __future__ import annotations

import os
import platform
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
    ("build", "cards", "expect"),
    [("cpu", 0, "any"), ("cpu", 0, "cpu"), ("cpu", 1, "any"), ("rocm", 0, "any"), ("rocm", 2, "cpu")],
)
def test_cpu_is_taken_where_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, build: str, cards: int, expect: str
) -> None:
    pretend(monkeypatch, build, cards)
    device = placement.place(expect)
    assert (device.kind, device.torch_type) == ("cpu", "cpu")
    assert device.name
    assert device == placement.cpu()


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


def test_missing_card_has_the_reason_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "rocm", 0)
    monkeypatch.setattr(placement, "why_no_card", lambda kind: f"the reason for {kind}")
    with pytest.raises(NoDeviceError, match=r"^No rocm card: the reason for rocm\.$"):
        placement.place("rocm")


def test_cards_that_torch_cannot_use_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "rocm", 2)
    assert placement.card_count() == 2
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert placement.card_count() == 0


def test_reason_is_read_from_the_device_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, other = tmp_path / "kfd", tmp_path / "dxg"
    assert "there is no" in placement.why_no_card("rocm", node, other)
    other.touch()
    assert "this is WSL" in placement.why_no_card("rocm", node, other)
    node.touch()
    assert "HIP_VISIBLE_DEVICES" in placement.why_no_card("rocm", node)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK | os.W_OK)
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


def test_formats_are_those_that_a_device_computes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def dtypes(kind: Any, arch: str) -> tuple[str, ...]:
        return placement.dtypes(Device(kind=kind, name="a device", arch=arch))

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    assert dtypes("cpu", "x86_64") == ("float32", "bfloat16")
    assert dtypes("rocm", "gfx1100") == ("float32", "float16", "bfloat16")
    assert dtypes("rocm", "gfx906") == dtypes("cuda", "gfx1100") == dtypes("rocm", "gfx9999") == ("float32", "float16")


def test_cards_are_named_by_their_addresses_and_partitions_by_a_number_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = ["0000:03:00", "0000:83:00", None, "0000:03:00"]
    monkeypatch.setattr(placement, "card_count", lambda: len(addresses))
    monkeypatch.setattr(placement, "pci_address", addresses.__getitem__)
    assert placement.card_ids() == ("0000:03:00#0", "0000:83:00", "card 2", "0000:03:00#1")


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        ({"pci_domain_id": 1, "pci_bus_id": 0xC3, "pci_device_id": 10}, "0001:c3:0a"),
        ({"pci_bus_id": 3, "pci_device_id": 0}, None),
        ({"pci_domain_id": 0, "pci_bus_id": "3", "pci_device_id": 0}, None),
        ({}, None),
        (RuntimeError("no such card"), None),
        (AssertionError("no such card"), None),
    ],
)
def test_address_of_a_card_is_read_where_torch_reports_it(
    monkeypatch: pytest.MonkeyPatch, properties: Any, address: str | None
) -> None:
    def properties_of(index: int) -> Any:
        assert index == 5
        if isinstance(properties, Exception):
            raise properties
        return SimpleNamespace(**properties)

    monkeypatch.setattr(torch.cuda, "get_device_properties", properties_of)
    assert placement.pci_address(5) == address


def test_card_is_described_by_its_name_and_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "rocm", 1)
    assert placement.place("any") == Device(kind="rocm", name="AMD Radeon RX 7900 XT", arch="gfx1100")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(name=index, gcnArchName="g"))
    assert [placement.card(index).name for index in (0, 3)] == [0, 3]
    assert placement.place("any").name == 0  # type: ignore[comparison-overlap]


def test_versions_are_those_of_python_torch_and_what_it_was_built_against(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"python": platform.python_version(), "torch": torch.__version__}
    for build, built in (("rocm", {"hip": "6.3.42131"}), ("cuda", {"cuda": "12.4"}), ("cpu", {})):
        pretend(monkeypatch, build, 0)
        assert placement.versions() == own | built
    monkeypatch.setattr(torch.version, "hip", "7.2")
    monkeypatch.setattr(torch.version, "cuda", "12.4")
    assert placement.versions() == own | {"hip": "7.2"}


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC: 9654 \nprocessor\t: 1\nmodel name\t: another\n", "AMD EPYC: 9654"),
        ("processor\t: 0\n", "machine"),
        (None, "processor"),
    ],
)
def test_processor_is_named_by_linux_else_by_python(
    monkeypatch: pytest.MonkeyPatch, cpuinfo: str | None, name: str
) -> None:
    def read_text(path: Path) -> str:
        assert path == Path("/proc/cpuinfo")
        if cpuinfo is None:
            raise OSError
        return cpuinfo

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(placement.platform, "processor", lambda: "processor")
    monkeypatch.setattr(placement.platform, "machine", lambda: "machine")
    assert placement.cpu() == Device(kind="cpu", name=name, arch="machine")
    monkeypatch.setattr(placement.platform, "processor", lambda: "")
    assert cpuinfo is not None or placement.cpu().name == "machine"


def test_missing_device_carries_its_reason_and_the_versions() -> None:
    assert (NoDeviceError("why").reason, str(NoDeviceError("why")), NoDeviceError("why").versions) == ("why", "why", {})
    assert NoDeviceError("why", {"torch": "2"}).versions == {"torch": "2"}
