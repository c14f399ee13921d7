"""Batches that are fetched ahead come in order, with the errors of workers."""

from __future__ import annotations

import random

import torch

from trainer.data.loading.prefetch import load
from trainer.data.loading.sampler import Sampler


def test_workers_fetch_in_order_and_lose_nothing() -> None:
    batches = list(Sampler(rows=100, batch_size=7, seed=0).batches(0))

    def slow(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for _ in range(random.randrange(3000)):
            pass
        return rows * 2, rows * 3

    for workers in (0, 1, 4):
        loaded = list(load(iter(batches), slow, workers))
        assert all(torch.equal(one, rows) for one, (rows, _, _) in zip(batches, loaded, strict=True))
        assert all(torch.equal(rows * 2, a) and torch.equal(rows * 3, b) for rows, a, b in loaded)


def test_fault_of_a_worker_reaches_the_loop() -> None:
    def broken(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        raise ZeroDivisionError

    for workers in (0, 2):
        try:
            next(load(iter([torch.arange(3)]), broken, workers))
        except ZeroDivisionError:
            continue
        raise AssertionError("no error")
