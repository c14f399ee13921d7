"""The diagnosis on made-up facts, and retries with a stand-in for NCCL: gloo ranks on this CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trainer.comms.route import GLOO, HOST, NCCL_NO_P2P
from trainer.probes import runner, two_cards
from trainer.probes.two_cards import NCCL_NO_SHM, Circumstances, Try
from trainer.probes.two_ranks import Place
from trainer.probes.verdict import Device

CARD = Device(kind="rocm", name="AMD Radeon RX 7900 XT", arch="gfx1100")
TWO = Place(ran_on=CARD, cards=2)
ONLY_WITHOUT_P2P = """
import os, sys
import torch, torch.distributed as dist
from trainer.probes import ddp_rank
honest = dist.init_process_group

def join(backend, **how):
    if backend == "nccl" and "NCCL_P2P_DISABLE" not in os.environ:
        os.abort()  # injected fault: NCCL that dies unless peer access is off
    honest("gloo", **how)

dist.init_process_group = join
ddp_rank.choose_device = lambda backend: torch.device("cpu")
sys.exit(ddp_rank.main())
"""
PROBE = """
    import sys
    from trainer.comms.route import HOST, NCCL_NO_P2P
    from trainer.probes import card_ipc, entry, placement, two_cards, two_gpu_step
    from trainer.probes.verdict import Device

    stand_in = Device(kind="cuda", name="stand-in for two cards", arch="none")
    placement.place, placement.card_count = lambda expect: stand_in, lambda: 2
    card_ipc.error = lambda: ""
    two_cards.WAYS = NCCL_NO_P2P, two_cards.NCCL_NO_SHM, HOST  # gloo is what stands in here anyway
    two_gpu_step.RANK_MODULE = "faulty_rank"
    sys.exit(entry.main("two_gpu_step", two_gpu_step.measure))
"""


def facts(**changes: Any) -> Circumstances:
    settings: dict[str, Any] = {
        "shm_free": 8 << 30,
        "iommu_translates": False,
        "cards_seen": 2,
        "cards_here": 2,
        "hiding": {},
        "ipc_error": "",
    }
    return Circumstances(**(settings | changes))


def tries(*worked: str) -> Sequence[Try]:
    return [Try(way=way, cause="" if way.name in worked else "wrong", seconds=1.0) for way in two_cards.WAYS]


@pytest.mark.parametrize(
    ("worked", "changes", "cause", "helped"),
    [
        (("nccl-no-p2p", "gloo", "host"), {"ipc_error": "RuntimeError: denied"}, "IPC denied", "NCCL_P2P_DISABLE=1"),
        (("nccl-no-p2p", "gloo", "host"), {"iommu_translates": True}, "the IOMMU stands", "NCCL_P2P_DISABLE=1"),
        (("nccl-no-p2p", "gloo", "host"), {}, "peer access does not work", "NCCL_P2P_DISABLE=1"),
        (
            ("nccl-no-shm", "gloo"),
            {"shm_free": 60 << 20},
            "/dev/shm is too small",
            "NCCL_SHM_DISABLE=1; the gloo backend",
        ),
        (("nccl-no-shm",), {}, "shared memory between the ranks", "NCCL_SHM_DISABLE=1"),
        (("gloo",), {}, "NCCL (RCCL on ROCm) does not work here", "the gloo backend"),
        (("host",), {}, "NCCL (RCCL on ROCm) does not work here", "averaging through host memory"),
        ((), {}, "no way works", "none of the ways that were tried"),
    ],
)
def test_the_cause_follows_from_what_helped_and_from_what_the_machine_says(
    worked: tuple[str, ...], changes: dict[str, Any], cause: str, helped: str
) -> None:
    found = two_cards.diagnose(TWO, tries(*worked), facts(**changes))
    assert cause in found["likely cause"]
    assert found["helped"].startswith(helped)
    assert found["evidence"]


def test_a_card_that_is_hidden_is_named_with_what_hides_it() -> None:
    one = Place(ran_on=CARD, cards=1)
    hidden = facts(cards_seen=1, hiding={"HIP_VISIBLE_DEVICES": "0"}, ipc_error=None)
    found = two_cards.diagnose(one, (), hidden)
    assert found["likely cause"] == "a card is hidden"
    assert found["evidence"] == "2 cards on this machine, 1 seen by torch; HIP_VISIBLE_DEVICES=0"
    assert two_cards.diagnose(one, (), facts(cards_seen=1, cards_here=1)) == {}
    assert "device node" in two_cards.diagnose(one, (), facts(cards_seen=1))["evidence"]


def test_the_ways_are_those_of_the_trainer_and_shared_memory_off() -> None:
    assert two_cards.WAYS == (NCCL_NO_P2P, NCCL_NO_SHM, GLOO, HOST)


def test_a_machine_is_read_from_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "0")
    (tmp_path / "dev/shm").mkdir(parents=True)
    for number, units in enumerate((0, 96, 96)):  # a CPU and two cards
        node = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{number}"
        node.mkdir(parents=True)
        (node / "properties").write_text(f"cpu_cores_count 0\nsimd_count {units}\n")
    group = tmp_path / "sys/kernel/iommu_groups/7"
    group.mkdir(parents=True)
    (group / "type").write_text("DMA-FQ\n")
    found = two_cards.circumstances(Place(ran_on=CARD, cards=1), tmp_path)
    assert (found.cards_here, found.cards_seen, found.iommu_translates) == (2, 1, True)
    assert found.shm_free > 0
    assert found.hiding["ROCR_VISIBLE_DEVICES"] == "0"
    (group / "type").write_text("identity\n")
    assert not two_cards.iommu_translates(tmp_path)
    assert two_cards.free_bytes(tmp_path / "nowhere") == 0


def test_a_step_that_fails_is_tried_again_each_way_and_stays_failed(make_probe: Any, tmp_path: Path) -> None:
    (tmp_path / "faulty_rank.py").write_text(ONLY_WITHOUT_P2P)
    verdict = runner.run(make_probe(PROBE, name="two_gpu_step"), "cuda", 150)
    assert verdict.status == "fail"
    retries = {check.name: check.status for check in verdict.checks if check.name.startswith("retry")}
    assert retries == {
        "retry with NCCL_P2P_DISABLE=1": "pass",
        "retry with NCCL_SHM_DISABLE=1": "fail",
        "retry with averaging through host memory": "pass",
    }
    assert verdict.diagnosis["helped"].startswith("NCCL_P2P_DISABLE=1; averaging through host memory")
    assert verdict.diagnosis["likely cause"]
