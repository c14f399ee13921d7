"""Batches of rows, fetched ahead by threads or taken on the spot: the same rows in the same order either way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from torch import Tensor

from trainer.data.loading.batch import Batch

Fetch = Callable[[Tensor], Batch]
AHEAD = 2  # batches in flight for each worker


def load(batches: Iterable[Tensor], fetch: Fetch, workers: int) -> Iterator[tuple[Tensor, Any, Any]]:
    """Yield each batch's row numbers with what `fetch` returns for them, in order.

    `workers` threads fetch ahead. They hold no state that a resume would need: what
    they fetched ahead and was not used is fetched again.

    Args:
        batches: row numbers of each batch, shape (rows,).
        fetch: returns inputs and targets of row numbers.
        workers: number of threads that fetch ahead; with 0 a batch is fetched when it is used.
    """
    if workers == 0:
        for rows in batches:
            yield rows, *fetch(rows)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="loader")
    try:
        yield from _ahead(batches, fetch, pool, depth=AHEAD * workers)
    finally:
        pool.shutdown(cancel_futures=True)


def _ahead(
    batches: Iterable[Tensor], fetch: Fetch, pool: ThreadPoolExecutor, *, depth: int
) -> Iterator[tuple[Tensor, Any, Any]]:
    waiting: deque[tuple[Tensor, Future[Batch]]] = deque()
    for rows in batches:
        waiting.append((rows, pool.submit(fetch, rows)))
        if len(waiting) > depth:
            first, result = waiting.popleft()
            yield first, *result.result()
    while waiting:
        first, result = waiting.popleft()
        yield first, *result.result()
