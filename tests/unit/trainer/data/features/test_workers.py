"""Processes that compute features end at once where what they compute is not wanted any more."""

from __future__ import annotations

import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from trainer.data.features.workers import StoppedError, unless_stopped, worker_pool

LONG = 60.0


def compute_for_long(begun: str) -> None:
    Path(begun).touch()
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        time.sleep(0.01)


def test_worker_pool_on_an_error_stops_what_runs_and_what_waits(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    futures: list[Future[None]] = []
    with pytest.raises(ValueError, match="not wanted"), worker_pool(1) as pool:
        futures += [pool.submit(unless_stopped, compute_for_long, str(begun)) for _ in range(2)]
        while not begun.exists():
            assert not futures[0].done()
            time.sleep(0.01)
        left = time.monotonic()
        raise ValueError("not wanted")
    assert time.monotonic() - left < LONG / 2
    for future in futures:
        assert future.cancelled() or isinstance(future.exception(), StoppedError)


def test_worker_pool_whose_workers_are_still_starting_ends_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match="not wanted"), worker_pool(2) as pool:
        large = bytes(10_000_000)  # more than the pipe to a worker holds
        futures = [pool.submit(unless_stopped, len, large) for _ in range(4)]
        raise ValueError("not wanted")
    assert time.monotonic() - began < LONG / 2
    assert all(future.cancelled() or isinstance(future.exception(), StoppedError) for future in futures)
