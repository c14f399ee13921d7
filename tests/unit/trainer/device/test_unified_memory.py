"""An APU's memory, counted once: trees made up from figures that users reported of Strix Halo machines.

SYNTHETIC: the figures are theirs, the files are not. No APU was met.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from trainer.device import capacity, memory
from trainer.device.capacity import card_memory, free_memory, limit_shared_memory, shared_memory
from trainer.device.unified_memory import SHARE, Pools, address_of, is_integrated, pools_of, shared_by

GIB = 2**30
PAGE = os.sysconf("SC_PAGE_SIZE")
ADDRESS = "0000:c5:00.0"
HALO = {"gcnArchName": "gfx1151", "pci_domain_id": 0, "pci_bus_id": 0xC5, "pci_device_id": 0}


def gib(number: float) -> int:
    return int(number * GIB)


def tree(
    root: Path, *, vram: float, gtt: float, host: float, used: float = 0.0, limits: dict[str, float] | None = None
) -> Path:
    """Make the files of an APU: totals, `used` of GTT and what the host has left in GiB, ttm's limits by module."""
    folder = root / "sys/bus/pci/devices" / ADDRESS
    folder.mkdir(parents=True)
    for name, number in {"vram_total": vram, "vram_used": 0.25, "gtt_total": gtt, "gtt_used": used}.items():
        (folder / f"mem_info_{name}").write_text(f"{gib(number)}\n")
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text(f"MemTotal: {gib(128) >> 10} kB\nMemAvailable:   {gib(host) >> 10} kB\n")
    for module, limit in (limits or {}).items():
        path = root / f"sys/module/{module}/parameters/pages_limit"
        path.parent.mkdir(parents=True)
        path.write_text(f"{gib(limit) // PAGE}\n")
    return root


@pytest.fixture
def apu(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A SIMULATED Strix Halo; `hip` is what torch reports as free and in all, in GiB."""
    found: dict[str, Any] = {"hip": (120.0, 62.47), "properties": dict(HALO), "fraction": None}
    monkeypatch.setattr(torch.version, "hip", "7.13.26154")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: tuple(map(gib, found["hip"])))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(**found["properties"]))
    monkeypatch.setattr(
        torch.cuda, "set_per_process_memory_fraction", lambda share, device: found.update(fraction=share)
    )
    return found


@pytest.mark.parametrize(
    ("machine", "hip", "pool", "free", "total"),
    [
        # legacy-rocm-build#6004: 0.5 GiB carved out, gttsize=131072; HIP reports 120 GiB free of 62.47
        ({"vram": 0.5, "gtt": 128, "host": 120}, (120, 62.47), "gtt", 62.47, 62.47),
        # nix-amd-ai#42: ttm.pages_limit alone gives exactly 96 GiB
        ({"vram": 4, "gtt": 96, "host": 118, "limits": {"ttm": 96}}, (96, 96), "gtt", 96, 96),
        # the same, and other programs hold all but 40 GiB of the host's memory
        ({"vram": 4, "gtt": 96, "host": 40, "limits": {"ttm": 96}}, (96, 96), "gtt", 40, 96),
        # gttsize=117760 and a lower pages_limit
        ({"vram": 0.5, "gtt": 115, "host": 120, "limits": {"ttm": 100}}, (115, 115), "gtt", 100, 100),
        # the driver package's ttm counts where both are loaded (legacy-rocm-build#5595)
        ({"vram": 0.5, "gtt": 115, "host": 120, "limits": {"ttm": 62, "amdttm": 115}}, (115, 115), "gtt", 115, 115),
        # 96 GiB carved out: the host has 32, GTT half of them; a driver that adds both reports 112
        ({"vram": 96, "gtt": 16, "host": 20}, (112, 112), "vram", 95.75, 96),
        # half and half: GTT is no larger, so the carve-out is used
        ({"vram": 64, "gtt": 64, "host": 50}, (128, 128), "vram", 63.75, 64),
        ({"vram": 0.5, "gtt": 62, "host": 100, "used": 60}, (2, 62), "gtt", 2, 62),
        ({"vram": 0.5, "gtt": 62, "host": 100, "used": 63}, (1, 62), "gtt", 0, 62),
    ],
)
def test_memory_of_an_apu_is_that_of_one_pool(
    machine: dict[str, Any],
    hip: tuple[float, float],
    pool: str,
    free: float,
    total: float,
    apu: dict[str, Any],
    tmp_path: Path,
) -> None:
    apu["hip"] = hip
    root = tree(tmp_path, **machine)
    assert card_memory("cuda:0", root) == pytest.approx((gib(free), gib(total)), abs=PAGE)
    assert free_memory("cuda:0", root) == pytest.approx(gib(free), abs=PAGE)
    found = shared_memory("cuda:0", root)
    assert found is not None
    assert found.pool == pool
    assert pool in found.why


def test_allocator_is_limited_to_a_share_of_what_is_free(apu: dict[str, Any], tmp_path: Path) -> None:
    apu["hip"] = (96, 96)
    facts = limit_shared_memory("cuda:0", tree(tmp_path, vram=4, gtt=96, host=48))
    assert facts is not None
    assert facts["limit"] == int(SHARE * gib(48))
    assert apu["fraction"] == pytest.approx(SHARE * 0.5)
    assert facts["pool"] == "gtt"
    assert "host has less left" in facts["why"]


def test_limit_is_never_more_than_what_torch_counts(apu: dict[str, Any], tmp_path: Path) -> None:
    facts = limit_shared_memory("cuda:0", tree(tmp_path, vram=0.5, gtt=128, host=120))
    assert apu["fraction"] == 1.0
    assert facts is not None
    assert facts["limit"] == gib(62.47)


@pytest.mark.parametrize(
    "properties",
    [
        {"gcnArchName": "gfx1100"},  # has its own
        {"pci_bus_id": None},  # a torch that reports no address
        {"pci_bus_id": 0x03},  # another card, of which there are no files
    ],
)
def test_card_of_its_own_memory_or_without_files_has_what_torch_reports(
    properties: dict[str, Any], apu: dict[str, Any], tmp_path: Path
) -> None:
    apu["properties"] |= properties
    apu["hip"] = (19, 20)
    root = tree(tmp_path, vram=0.5, gtt=4, host=8)
    assert card_memory("cuda:0", root) == (gib(19), gib(20))
    assert limit_shared_memory("cuda:0", root) is None
    assert apu["fraction"] is None


@pytest.mark.parametrize(("driven", "found"), [((ADDRESS,), True), ((ADDRESS, "0000:03:00.0"), False), ((), False)])
def test_torch_that_reports_no_address_leaves_the_one_gpu_of_the_driver(
    driven: tuple[str, ...], found: bool, apu: dict[str, Any], tmp_path: Path
) -> None:
    root = tree(tmp_path, vram=0.5, gtt=4, host=8)
    (root / "sys/bus/pci/drivers/amdgpu").mkdir(parents=True)
    for name in (*driven, "module", "bind"):
        (root / "sys/bus/pci/drivers/amdgpu" / name).touch()
    apu["properties"]["pci_domain_id"] = None
    assert (shared_memory("cuda:0", root) is not None) == found


def test_card_of_nvidia_is_not_looked_up(apu: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.version, "hip", None)
    assert shared_memory("cuda:0", tree(tmp_path, vram=0.5, gtt=4, host=8)) is None


@pytest.mark.parametrize("broken", ["", "many", "-"])
def test_files_that_hold_no_number_are_no_pools(broken: str, tmp_path: Path) -> None:
    root = tree(tmp_path, vram=1, gtt=2, host=3)
    (root / "sys/bus/pci/devices" / ADDRESS / "mem_info_gtt_used").write_text(broken)
    assert pools_of(ADDRESS, root) is None
    assert pools_of("0000:00:00.0", root) is None


def test_growth_of_the_micro_batch_sees_the_same_memory(apu: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "card_memory", lambda device: (7, 9))
    for name in ("memory_reserved", "memory_allocated", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda device: 0)
    found = memory.report(torch.device("cuda:0"))
    assert found is not None
    assert (found.free, found.total) == (7, 9)
    assert memory.card_memory is not capacity.card_memory


def test_host_that_reports_nothing_leaves_the_pools_limit() -> None:
    pools = Pools(vram_total=1, vram_used=0, gtt_total=10, gtt_used=4)
    assert shared_by(pools, available=None).free == 6


@pytest.mark.parametrize(
    ("properties", "integrated"),
    [
        ({"is_integrated": 1, "gcnArchName": "gfx942"}, True),
        ({"is_integrated": 0, "gcnArchName": "gfx1151:xnack-"}, True),  # older torches report 0
        ({"gcnArchName": "gfx1201"}, False),
        ({}, False),
    ],
)
def test_integrated_is_what_torch_or_the_architecture_states(properties: dict[str, Any], integrated: bool) -> None:
    assert is_integrated(SimpleNamespace(**properties)) is integrated


def test_address_is_written_as_the_kernel_does() -> None:
    assert address_of(SimpleNamespace(**HALO)) == ADDRESS
    assert address_of(SimpleNamespace()) is None
