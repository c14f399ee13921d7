"""The ladder of retries and the cause, on made-up facts and made-up outcomes of each transport."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import pytest

from trainer.diagnostics.probes.pair.ranks import cause_search
from trainer.diagnostics.probes.pair.ranks.cause_search import NCCL_NO_SHM, TransportTrial
from trainer.diagnostics.probes.pair.ranks.host_facts import HostFacts
from trainer.diagnostics.probes.verdict import Verdict
from trainer.distributed.transports.transport import GLOO, HOST, NCCL_NO_P2P, Transport

FAILED = Verdict(probe="collectives", status="fail", summary="2 of 9 checks failed: all-reduce 1024 bytes.")
WORDS = {
    "nccl-no-p2p": "NCCL_P2P_DISABLE=1",
    "nccl-no-shm": "NCCL_SHM_DISABLE=1",
    "gloo": "the gloo backend",
    "host": "staging through host memory",
}


def facts(**changes: Any) -> HostFacts:
    settings: dict[str, Any] = {
        "shm_free": 8 << 30,
        "iommu_translates": False,
        "cards_seen": 2,
        "cards_here": 2,
        "hiding": {},
        "ipc_error": "",
    }
    return HostFacts(**(settings | changes))


def tries(*worked: str) -> Sequence[TransportTrial]:
    return [
        TransportTrial(transport=each, cause="" if each.name in worked else "wrong", seconds=1.0)
        for each in cause_search.TRANSPORTS
    ]


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
        (("host",), {"shm_free": 60 << 20}, "/dev/shm is too small", "staging through host memory"),
        (("host",), {}, "NCCL (RCCL on ROCm) does not work here", "staging through host memory"),
        ((), {}, "no transport works", "none of the transports that were tried"),
    ],
)
def test_cause_follows_from_what_helped_and_from_facts_of_the_machine(
    worked: tuple[str, ...], changes: dict[str, Any], cause: str, helped: str
) -> None:
    found = cause_search.explained(FAILED, facts(**changes), tries(*worked))
    assert cause in found.diagnosis["likely cause"]
    assert found.diagnosis["helped"].startswith(helped)
    assert found.diagnosis["evidence"]
    assert found.status == "fail"


@pytest.mark.parametrize("works", list(itertools.product((False, True), repeat=4)))
def test_rungs_can_each_help_and_each_fail(works: tuple[bool, ...]) -> None:
    names = [transport.name for transport in cause_search.TRANSPORTS]
    worked = [name for name, works_here in zip(names, works, strict=True) if works_here]
    made = cause_search.retry(
        cause_search.TRANSPORTS, lambda transport, _: "" if transport.name in worked else "wrong", time.monotonic() + 60
    )
    found = cause_search.explained(FAILED, facts(), made)
    statuses = {check.name: check.status for check in found.checks}
    assert statuses == {f"retry with {WORDS[name]}": "pass" if name in worked else "fail" for name in names}
    summary = f"passes with {WORDS[worked[0]]}" if worked else "and each other transport that was tried"
    assert summary in found.summary
    assert f"(likely: {found.diagnosis['likely cause']})" in found.summary
    assert found.summary.startswith(FAILED.summary)


def test_verdict_states_what_helped_in_one_sentence() -> None:
    found = cause_search.explained(FAILED, facts(), tries("nccl-no-p2p", "host"))
    assert found.summary.endswith("Fails as it is; passes with NCCL_P2P_DISABLE=1 (likely: peer access does not work).")


def test_attempt_without_time_is_not_tried_and_proves_nothing() -> None:
    tried: list[Transport] = []
    made = cause_search.retry(cause_search.TRANSPORTS, lambda each, _: tried.append(each) or "", time.monotonic() + 1.0)  # type: ignore[func-returns-value]
    assert tried == []
    found = cause_search.explained(FAILED, facts(), made)
    assert {check.status for check in found.checks} == {"not-applicable"}
    assert found.diagnosis["likely cause"] == "not found"
    assert "passes with" not in found.summary


def test_attempts_that_end_early_leave_their_time_to_the_next() -> None:
    given: list[float] = []
    cause_search.retry(cause_search.TRANSPORTS, lambda _, seconds: given.append(seconds) or "", time.monotonic() + 80)  # type: ignore[func-returns-value]
    assert given == pytest.approx([20, 80 / 3, 40, 80], abs=0.5)


def test_card_that_is_hidden_is_named_with_what_hides_it() -> None:
    hidden = facts(cards_seen=1, hiding={"HIP_VISIBLE_DEVICES": "0"}, ipc_error=None)
    found = cause_search.explained(FAILED, hidden)
    assert found.diagnosis["likely cause"] == "a card is hidden"
    assert found.diagnosis["evidence"] == "2 cards on this machine, 1 seen by torch; HIP_VISIBLE_DEVICES=0"
    assert found.summary.endswith("Likely: a card is hidden.")
    assert "device node" in cause_search.explained(FAILED, facts(cards_seen=1)).diagnosis["evidence"]


def test_single_card_and_a_requested_cpu_hide_nothing() -> None:
    assert cause_search.explained(FAILED, facts(cards_seen=1, cards_here=1)) == FAILED
    assert cause_search.explained(FAILED, facts(cards_seen=0)) == FAILED


@pytest.mark.parametrize(
    ("worked", "changes", "cause"),
    [
        ((), {}, "peer access does not work"),
        ((), {"iommu_translates": True, "shm_free": 0}, "the IOMMU stands between the cards"),
        (("nccl-no-p2p",), {"iommu_translates": True}, "the IOMMU stands between the cards"),
        (("nccl-no-p2p", "nccl-no-shm"), {}, "peer access does not work"),
        (("nccl-no-shm",), {}, "NCCL's shared memory does not work"),
    ],
)
def test_copies_within_one_process_fail_for_other_reasons(
    worked: tuple[str, ...], changes: dict[str, Any], cause: str
) -> None:
    found = cause_search.explained(FAILED, facts(**changes), tries(*worked), cause_search.of_copies)
    assert found.diagnosis["likely cause"] == cause
    assert "IOMMU" in found.diagnosis["evidence"] or "/dev/shm" in found.diagnosis["evidence"]


def test_attempts_are_the_trainers_transports_and_shared_memory_off() -> None:
    assert cause_search.TRANSPORTS == (NCCL_NO_P2P, NCCL_NO_SHM, GLOO, HOST)
