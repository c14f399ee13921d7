"""What tests of trainer/diagnostics/probes/pair/ranks share."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.diagnostics.probes.pair.ranks import host_facts, ipc


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up machine: two cards, room in /dev/shm, an IOMMU that passes through, and IPC that works."""
    for name in host_facts.HIDING:
        monkeypatch.delenv(name, raising=False)
    for number in (1, 2):
        node = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{number}"
        node.mkdir(parents=True)
        (node / "properties").write_text("simd_count 96\n")
    (tmp_path / "sys/kernel/iommu_groups/7").mkdir(parents=True)
    (tmp_path / "sys/kernel/iommu_groups/7/type").write_text("identity\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/shm").symlink_to(tmp_path)
    monkeypatch.setattr(host_facts, "ROOT", tmp_path)
    monkeypatch.setattr(ipc, "error", lambda seconds: "")
    return tmp_path
