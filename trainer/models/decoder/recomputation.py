"""Whether a forward pass is one that activation checkpointing runs again, or one with the weights of the last pass.

The first is run for what it saves and not for its result. In both, what is formed of the weights alone is there.
"""

from __future__ import annotations

import threading
from types import TracebackType


class _Depth(threading.local):
    """Backward passes of a card run in a thread of their own, each with its own count."""

    value = 0


_DEPTH = _Depth()
_SAME = _Depth()


class SameWeights:
    """Marks the passes within as ones after a pass with the same weights; it may be entered more than once."""

    def __enter__(self) -> None:
        _SAME.value += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _SAME.value -= 1


class Recomputation:
    """Marks the passes within as computed again; it may be entered more than once."""

    def __enter__(self) -> None:
        _DEPTH.value += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _DEPTH.value -= 1


def recomputed() -> bool:
    """Return whether the present pass is computed again: what comes last in a layer is then not needed."""
    return _DEPTH.value > 0


def same_weights() -> bool:
    """Return whether the weights are those of the pass before: that pass was forward, and is not repeated alone."""
    return _SAME.value > 0 or recomputed()
