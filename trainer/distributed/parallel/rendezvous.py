"""Rendezvous for one launch in a store that may hold keys of earlier attempts.

torchrun keeps one store for all its attempts, each machine's launcher counts attempts for itself, and one that comes
back counts from 0: no number that a rank is given separates one start from another. So rank 0 names the rendezvous at
random, and publishes the answers of the others, which are drawn anew for each start, too. What is left in the store
from before answers neither.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Protocol

from trainer.runtime.errors import TrainerError

RENDEZVOUS_KEY = "trainer/meeting"
PATIENCE_S = 600.0  # importing torch from a shared disk has been seen to take minutes on one node of many
INTERVAL_S = 0.02


class Store(Protocol):
    """The part of torch.distributed.Store that a rendezvous needs."""

    def set(self, key: str, value: str) -> None:
        """Write `value` under `key`."""

    def get(self, key: str) -> bytes:
        """Return the value of `key`, which is there."""

    def check(self, keys: list[str]) -> bool:
        """Return whether all of `keys` are there."""


def meet(store: Store, rank: int, world: int, *, seconds: float = PATIENCE_S) -> str:
    """Return a name for this start that all its ranks have in common and no other start has.

    Args:
        rank: this rank's number, from 0.
        world: number of ranks.
        seconds: time to wait for the other ranks.

    Raises:
        TrainerError: RM568 where a rank does not come within `seconds`.
    """
    return (
        publish_rendezvous_id(store, world, seconds=seconds)
        if rank == 0
        else await_rendezvous_id(store, rank, seconds=seconds)
    )


def publish_rendezvous_id(store: Store, world: int, *, seconds: float) -> str:
    """Rank 0's side: name the rendezvous, wait for every rank's answer, and publish the answers.

    Args:
        world: number of ranks.
        seconds: time to wait for the other ranks.
    """
    rendezvous_id = secrets.token_hex(8)
    keys = {rank: _answer(rendezvous_id, rank) for rank in range(1, world)}
    store.set(RENDEZVOUS_KEY, rendezvous_id)
    if not _until(lambda: store.check(list(keys.values())), seconds):
        missing = [rank for rank, key in keys.items() if not store.check([key])]
        raise TrainerError("RM568", what=f"rank(s) {', '.join(map(str, missing))} did not come within {seconds:g} s")
    answers = {rank: store.get(key).decode() for rank, key in keys.items()}
    store.set(_agreed(rendezvous_id), json.dumps(list(answers.values())))
    return rendezvous_id


def await_rendezvous_id(store: Store, rank: int, *, seconds: float) -> str:
    """Another rank's side: answer the published id, and again if it changes, until the answer is in the agreement.

    Args:
        rank: this rank's number, from 1.
        seconds: time to wait for rank 0.
    """
    mine = secrets.token_hex(8)
    answered = ""

    def taken() -> bool:
        nonlocal answered
        if not store.check([RENDEZVOUS_KEY]):
            return False
        if (standing := store.get(RENDEZVOUS_KEY).decode()) != answered:
            store.set(_answer(standing, rank), mine)
            answered = standing
        return store.check([_agreed(answered)]) and mine in json.loads(store.get(_agreed(answered)))

    if not _until(taken, seconds):
        raise TrainerError("RM568", what=f"rank {rank} was not answered by rank 0 within {seconds:g} s")
    return answered


def _answer(rendezvous_id: str, rank: int) -> str:
    return f"{RENDEZVOUS_KEY}/{rendezvous_id}/{rank}"


def _agreed(rendezvous_id: str) -> str:
    return f"{RENDEZVOUS_KEY}/{rendezvous_id}/agreed"


def _until(done: Callable[[], bool], seconds: float) -> bool:
    """Ask until it is so; return False where it is not after `seconds`."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(INTERVAL_S)
    return True
