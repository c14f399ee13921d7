"""A made-up machine: trees of files that say what /sys, /proc and /dev say where two cards fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.diagnostics.probes.pair.ranks import host_facts, ipc


def cards(root: Path, *units: int) -> None:
    """KFD's nodes with so many compute units each; a CPU has none."""
    for number, count in enumerate(units):
        node = root / f"sys/class/kfd/kfd/topology/nodes/{number}"
        node.mkdir(parents=True)
        (node / "properties").write_text(f"cpu_cores_count 0\nsimd_count {count}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of a CPU and two cards, nothing hidden, an IOMMU that passes through, and room in /dev/shm."""
    for name in host_facts.HIDING:
        monkeypatch.delenv(name, raising=False)
    cards(tmp_path, 0, 96, 96)
    (tmp_path / "dev/shm").mkdir(parents=True)
    group = tmp_path / "sys/kernel/iommu_groups/7"
    group.mkdir(parents=True)
    (group / "type").write_text("identity\n")
    monkeypatch.setattr(host_facts, "ROOT", tmp_path)
    return tmp_path


def test_machine_without_faults_is_read_as_one(machine: Path) -> None:
    found = host_facts.read(2)
    assert (found.cards_here, found.cards_seen, found.iommu_translates, found.hiding) == (2, 2, False, {})
    assert found.shm_free > 0
    assert found.ipc_error is None  # nobody was asked
    assert found.ipc_denied == ""


def test_variable_that_hides_a_card_is_read(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "0")
    assert host_facts.read(1).hiding == {"ROCR_VISIBLE_DEVICES": "0"}


def test_cards_of_nvidia_are_counted_where_kfd_is_not(tmp_path: Path) -> None:
    for slot in ("0000:01:00.0", "0000:41:00.0"):
        (tmp_path / "proc/driver/nvidia/gpus" / slot).mkdir(parents=True)
    assert host_facts.cards_here(tmp_path) == 2


@pytest.mark.parametrize(("kind", "translates"), [("DMA", True), ("DMA-FQ", True), ("identity", False)])
def test_iommu_translates_unless_it_passes_through(machine: Path, kind: str, translates: bool) -> None:
    (machine / "sys/kernel/iommu_groups/7/type").write_text(f"{kind}\n")
    assert host_facts.read(2).iommu_translates is translates


def test_full_file_system_in_place_of_shared_memory_is_seen(machine: Path) -> None:
    (machine / "dev/shm").rmdir()
    (machine / "dev/shm").symlink_to("/proc")  # a file system that has no room at all
    assert host_facts.read(2).shm_free == 0
    (machine / "dev/shm").unlink()
    assert host_facts.read(2).shm_free == 0


def test_ipc_is_requested_as_long_as_there_is_time(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts: list[float] = []

    def refuse(seconds: float) -> str:
        timeouts.append(seconds)
        return "RuntimeError: hipErrorInvalidValue"

    monkeypatch.setattr(ipc, "error", refuse)
    assert host_facts.read(2, ipc_seconds=7.0).ipc_denied == "RuntimeError: hipErrorInvalidValue"
    assert host_facts.read(1, ipc_seconds=7.0).ipc_error is None  # one card has no fellow
    assert timeouts == [7.0]


def test_bytes_read_wrongly_are_no_denial(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ipc, "error", lambda seconds: ipc.OTHER_BYTES)
    found = host_facts.read(2, ipc_seconds=1.0)
    assert (found.ipc_error, found.ipc_denied) == (ipc.OTHER_BYTES, "")
