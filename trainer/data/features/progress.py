"""The progress line while features are computed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TextIO


@contextlib.contextmanager
def bar_counter(stream: TextIO) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of further bars done; their rate is shown on `stream`."""
    from tqdm import tqdm

    live = stream.isatty()
    line = tqdm(
        desc="features",
        unit=" bars",
        unit_scale=True,
        file=stream,
        mininterval=0.1 if live else 10.0,
        dynamic_ncols=live,
    )
    with line as counter:

        def count(bars: int) -> None:
            counter.update(bars)

        yield count
