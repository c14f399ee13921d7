"""Ranks as threads that meet in torch's own store, in which earlier starts left what they wrote."""

from __future__ import annotations

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch.distributed as dist

from tests.left_out import long
from trainer.distributed import torchrun
from trainer.distributed.parallel import rendezvous
from trainer.distributed.parallel.rendezvous import RENDEZVOUS_KEY, meet
from trainer.runtime.errors import TrainerError


@pytest.fixture
def store() -> dist.HashStore:
    return dist.HashStore()


def start(store: dist.HashStore, world: int, late: dict[int, float] | None = None) -> list[str]:
    def rank(number: int) -> str:
        time.sleep((late or {}).get(number, 0))
        return meet(store, number, world, seconds=20)

    with ThreadPoolExecutor(world) as threads:
        return list(threads.map(rank, range(world)))


@pytest.mark.parametrize("late", [{}, {0: 0.3}, {1: 0.3}, {0: 0.2, 2: 0.4}])
def test_starts_each_have_a_name_of_their_own_whoever_comes_first(
    store: dist.HashStore, late: dict[int, float]
) -> None:
    starts = [start(store, 3, late) for _ in range(3)]
    assert all(len(set(names)) == 1 for names in starts)
    assert len({names[0] for names in starts}) == 3


def test_invitation_of_an_earlier_start_is_answered_in_vain(store: dist.HashStore) -> None:
    (old, _) = start(store, 2)
    with ThreadPoolExecutor(1) as thread:
        follower = thread.submit(meet, store, 1, 2, seconds=20)
        time.sleep(0.3)
        assert not follower.done()  # it found the old invitation, and an agreement of which it is no part
        assert json.loads(store.get(f"{RENDEZVOUS_KEY}/{old}/agreed")) != [
            store.get(f"{RENDEZVOUS_KEY}/{old}/1").decode()
        ]
        new = meet(store, 0, 2, seconds=20)
        assert follower.result() == new != old


def test_start_that_broke_off_between_the_ranks_leaves_nothing_that_misleads(store: dist.HashStore) -> None:
    with pytest.raises(TrainerError, match="RM568") as caught:
        rendezvous.publish_rendezvous_id(store, 3, seconds=0.1)
    assert caught.value.what == "rank(s) 1, 2 did not come within 0.1 s"
    with pytest.raises(TrainerError, match="RM568") as caught:
        rendezvous.await_rendezvous_id(store, 1, seconds=0.1)
    assert caught.value.what == "rank 1 was not answered by rank 0 within 0.1 s"
    names = start(store, 3, {0: 0.2})
    assert len(set(names)) == 1


def test_rank_alone_in_an_empty_store_waits_for_rank_0(store: dist.HashStore) -> None:
    with pytest.raises(TrainerError, match="RM568"):
        meet(store, 1, 2, seconds=0.05)
    assert not store.check([RENDEZVOUS_KEY])


@long
def test_ranks_that_torchrun_starts_again_meet_though_its_store_is_the_old_one(tmp_path: Path) -> None:
    argv = torchrun.command([], ranks=2, max_restarts=1)
    program = [*argv[: argv.index("--") - 1], str(Path(__file__).with_name("restart_program.py")), str(tmp_path)]
    done = subprocess.run(
        program, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert {path.name for path in tmp_path.iterdir()} == {
        f"attempt{attempt}-rank{rank}" for attempt in (0, 1) for rank in (0, 1)
    }
