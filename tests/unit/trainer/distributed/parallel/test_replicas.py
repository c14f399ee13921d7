"""Two real ranks over gloo on the CPU run `rank_program` once; each test looks at one thing they found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from trainer.device.memory import OutOfMemory
from trainer.distributed.parallel.replicas import Replicas

Found = list[dict[str, Any]]


@pytest.fixture(scope="module")
def found(two_ranks: Callable[..., Found]) -> Found:
    return two_ranks(Path(__file__).with_name("rank_program.py"))


def test_two_ranks_train_like_one_process_on_the_joined_batch(found: Found) -> None:
    for rank in found:
        for name, difference in rank["equal_to_one_process"].items():
            # fp32 rounds sums in another order: 6e-8 a step, made larger by AdamW's division
            assert difference < (1e-12 if name.startswith("fp64") else 1e-5), name
        assert len(rank["equal_to_one_process"]) == 8


def test_memory_that_runs_out_on_one_rank_blocks_no_rank_and_changes_nothing(found: Found) -> None:
    for number, rank in enumerate(found):
        for where in ("first piece", "last piece"):
            assert rank["out_of_memory"][where]["failed"] == (number == 1)
            assert rank["out_of_memory"][where]["difference"] < 1e-12


def test_threads_of_gloo_are_gone_after_the_world_is_closed(found: Found) -> None:
    """One that drops a tensor while the interpreter ends aborts the process; seen in one of 60 runs under load."""
    for rank in found:
        during, after = rank["gloo_threads"]
        assert during > 0
        assert after == 0


def test_gradients_are_sent_in_the_last_micro_step_only_and_while_backward_runs(found: Found) -> None:
    for rank in found:
        events, buckets = rank["sent_once"]["events"], rank["sent_once"]["buckets"]
        assert events[: 3 * 2] == ["backward", "backward ended"] * 3
        assert events.count("send") == buckets > 1
        last = events[3 * 2 :]
        assert last[0] == "backward"
        assert "send" in last[: last.index("backward ended")]


def test_parameter_without_a_gradient_anywhere_stays_without(found: Found) -> None:
    for rank in found:
        assert rank["unused"] == {"all": [2.0, 2.0], "one": [1.0, 1.0], "none": None}


def test_transports_all_add_and_compression_costs_what_bf16_rounds(found: Found) -> None:
    for rank in found:
        sums = rank["sums"]
        assert sums["direct"] == sums["host"] < 1e-7
        assert sums["host in order"] < 1e-7
        assert 1e-4 < sums["bf16"] < 4e-3  # half a unit in the last place of 8 bits is 2e-3
        assert 1e-4 < sums["bf16 host"] < 4e-3


def test_sum_is_a_hook_for_torchs_own_data_parallel(found: Found) -> None:
    assert [rank["torchs_own"] for rank in found] == [0.0, 0.0]


def test_values_and_votes_reach_every_rank(found: Found) -> None:
    common = {
        "any": [True, False, True],
        "broadcast": {"from": 0},
        "gather": [[0], [1]],
        "sum": [0.0, 3.0, 6.0],
        "maximum": [1.0, 1.0],
        "buffers": [[1.0, 1.0], 10],
    }
    assert [rank["values"] for rank in found] == [{**common, "share": [0, 5]}, {**common, "share": [5, 11]}]


def test_transport_is_reported_once(found: Found) -> None:
    assert [[event["route"] for event in rank["events"]] for rank in found] == [["gloo"], []]


class Sync:
    """A stand-in for the buckets' synchronization: notes what it is told to do."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.calls.append(name)


def replicas() -> tuple[Replicas, list[str]]:
    """A world that was never joined, which is enough for the order of its calls."""
    made, sync = Replicas.__new__(Replicas), Sync()
    made.sync = sync  # type: ignore[assignment]
    return made, sync.calls


@pytest.mark.parametrize(("last", "calls"), [(True, ["arm", "flush"]), (False, [])])
def test_gradients_are_armed_and_sent_around_the_last_micro_step_alone(last: bool, calls: list[str]) -> None:
    made, seen = replicas()
    with made.micro_step(nn.Identity(), last=last):
        assert seen == calls[:1]
    assert seen == calls


@pytest.mark.parametrize(("last", "before"), [(True, ["arm"]), (False, [])])
def test_memory_that_runs_out_sends_in_any_micro_step_and_is_raised(last: bool, before: list[str]) -> None:
    made, seen = replicas()
    with pytest.raises(OutOfMemory), made.micro_step(nn.Identity(), last=last):
        raise OutOfMemory("HIP out of memory")
    assert seen == [*before, "flush"]


def test_other_error_sends_nothing() -> None:
    made, seen = replicas()
    with pytest.raises(ZeroDivisionError), made.micro_step(nn.Identity(), last=True):
        raise ZeroDivisionError
    assert seen == ["arm"]
