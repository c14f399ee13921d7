"""An attempt of a transport in processes that may be killed."""

from __future__ import annotations

import argparse
import re

import pytest
import torch
import torch.distributed as dist

from tests.fixtures.transports import climb, faulty
from trainer.distributed.transports import attempt
from trainer.distributed.transports.transport import GLOO
from trainer.runtime.errors import TrainerError


def test_hang_costs_its_time_limit_and_names_where(store: dist.TCPStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in faulty("gloo:hang").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TrainerError, match="RM561") as caught:
        climb(store, [GLOO], seconds=6)
    phases = "import torch|join the group|all-reduce of 1,024 bytes"
    assert re.search(rf"hung in '({phases})', ended after", caught.value.what)


@pytest.mark.parametrize(("surplus", "wrong"), [(0, ""), (1, "1 of 256 sums differ from the right ones")])
def test_sum_of_one_rank_is_compared_element_by_element(
    surplus: int, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "SIZES", (256, 512))

    def add(flat: torch.Tensor) -> None:
        flat[128] += surplus

    phases: list[str] = []

    def report(*, begin: str) -> None:
        phases.append(begin)

    found = attempt.measure(add, argparse.Namespace(rank=0, world=1), torch.device("cpu"), report)
    assert found["wrong"] == wrong
    assert phases == ["all-reduce of 1,024 bytes", "all-reduce of 2,048 bytes"][: 1 if wrong else 2]
    assert [*found["seconds"]] == [256, 512][: 1 if wrong else 2]


@pytest.mark.parametrize(("transport", "at_once"), [("gloo", [1]), ("host", [1]), ("nccl", [])])
def test_trial_of_gloo_alone_ends_without_torchs_destructors(
    monkeypatch: pytest.MonkeyPatch, transport: str, at_once: list[int]
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(attempt, "leave_after_gloo", ended.append)
    more = "--device cpu --store a:1 --prefix p --rank 0 --world 2 --seconds 1"
    with pytest.raises(SystemExit) as caught:
        attempt.leave(1, ["--transport", transport, *more.split()])
    assert (ended, caught.value.code) == (at_once, 1)
