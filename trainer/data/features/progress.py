"""The progress line while features are computed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TextIO

from trainer.runtime.events import progress_line


@contextlib.contextmanager
def bar_counter(stream: TextIO) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of further bars done; their rate is shown on `stream`."""
    with progress_line(stream, desc="features", unit=" bars", unit_scale=True) as counter:

        def count(bars: int) -> None:
            counter.update(bars)

        yield count
