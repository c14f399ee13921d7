"""fully_shard and the pipeline with two real ranks over gloo on the CPU; each kind is run once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Found = list[dict[str, Any]]


@pytest.fixture(scope="module", params=["fsdp2", "pipeline"])
def found(request: pytest.FixtureRequest, two_ranks: Callable[..., Found]) -> Found:
    return two_ranks(Path(__file__).with_name("split_model_program.py"), request.param)


def test_parts_of_a_model_train_like_one_process(found: Found) -> None:
    for rank in found:
        assert len(rank["difference"]) == 6
        for name, difference in rank["difference"].items():
            assert difference < 1e-12, name


def test_resumed_run_is_the_same_to_the_bit(found: Found) -> None:
    assert [rank["resumed to the bit"] for rank in found] == [True, True]


def test_threads_of_gloo_are_gone_after_the_world_is_closed(found: Found) -> None:
    for rank in found:
        during, after = rank["gloo_threads"]
        assert during > 0
        assert after == 0


def test_ranks_each_train_their_part_only(found: Found) -> None:
    own = [rank["own"] for rank in found]
    assert sum(own) == found[0]["all"]
    assert all(0 < part < found[0]["all"] for part in own)


def test_ranks_losses_add_up_to_that_of_one_process(found: Found) -> None:
    assert found[0]["losses"] == found[1]["losses"]
    assert found[0]["losses"] == pytest.approx(found[0]["losses of one process"], rel=1e-5)


@pytest.mark.parametrize("steps", ["every", "some", "no"])
def test_gradients_of_a_split_model_are_clipped_by_the_norm_of_all(found: Found, steps: str) -> None:
    for rank in found:
        seen = rank["clipping"][steps]
        assert seen["weights"] < 1e-12
        assert seen["losses"] < 1e-12
        assert len(seen["norms"]) == len(rank["clipping"]["unlimited"]) == 8
        assert max(seen["norms"]) <= seen["limit"] * (1 + 1e-9)
        at_limit = [norm for norm in seen["norms"] if norm == pytest.approx(seen["limit"], rel=1e-4)]
        assert len(at_limit) == 8 if steps == "every" else len(at_limit) < 8
        assert bool(at_limit) == (steps != "no")
