"""The heartbeat of one rank: a mapped file that the rank writes and the watcher reads."""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SECTIONS = ("start", "data", "forward", "backward", "comms", "optimizer", "evaluation", "checkpoint", "end")
INDEX = {name: number for number, name in enumerate(SECTIONS)}
MAGIC = 0x524D_4245_4154_0001  # the last digits are the layout's version
HEAD = 5  # magic, pid, step, section, nanoseconds at which the section was entered
WORDS = HEAD + 2 * len(SECTIONS)  # then how often each section was left, and its longest stay in nanoseconds
BYTES = 8 * WORDS


@dataclass(frozen=True, kw_only=True)
class Beat:
    """A heartbeat as read: `entered` in seconds of the monotonic clock, `longest` in seconds for each section."""

    pid: int
    step: int
    section: str
    entered: float
    passes: dict[str, int]
    longest: dict[str, float]


class SectionTimer:
    """A stay in a section; only one that ends well is learned from. A class, for it costs a third of a generator."""

    __slots__ = ("begun", "index", "outer", "words")

    def __init__(self, words: memoryview[int], index: int) -> None:
        self.words, self.index = words, index

    def __enter__(self) -> None:
        words = self.words
        self.outer, self.begun = words[3], time.monotonic_ns()
        words[4], words[3] = self.begun, self.index

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        words, now = self.words, time.monotonic_ns()
        if kind is None:
            slot, stayed = HEAD + 2 * self.index, now - self.begun
            words[slot] += 1
            words[slot + 1] = max(words[slot + 1], stayed)
        words[4], words[3] = now, self.outer


class HeartbeatWriter:
    """The writing side. A section costs two clock readings and five stores, about a microsecond."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(bytes(BYTES))
        with fresh.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), BYTES)
        self._words = memoryview(self._map).cast("q")
        self._words[1], self._words[4], self._words[0] = os.getpid(), time.monotonic_ns(), MAGIC
        fresh.rename(path)  # a reader never sees one that is half made

    def section(self, name: str) -> SectionTimer:
        """Return the context of being in section `name`, then in the one before it again."""
        return SectionTimer(self._words, INDEX[name])

    def step(self, number: int) -> None:
        """Note which optimizer step is running."""
        self._words[2] = number

    def forget(self) -> None:
        """Learn anew how long sections take: steps are about to be larger ones."""
        for slot in range(HEAD, WORDS):  # each count before its longest stay, so that no reader takes 0 for learned
            self._words[slot] = 0

    def end(self) -> None:
        """Mark this rank as finished, so that the watcher does not wait for it."""
        self._words[3] = SECTIONS.index("end")

    def close(self) -> None:
        """Unmap the file."""
        self._words.release()
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.close()


def read_beat(path: Path) -> Beat | None:
    """Return the heartbeat in `path`, or None where there is none yet.

    Raises:
        ValueError: the file was written by another version of the trainer.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(content) != BYTES or struct.unpack_from("q", content)[0] != MAGIC:
        raise ValueError(f"{path} is no heartbeat of this version")
    words = struct.unpack(f"{WORDS}q", content)
    return Beat(
        pid=words[1],
        step=words[2],
        section=SECTIONS[words[3]],
        entered=words[4] / 1e9,
        passes=dict(zip(SECTIONS, words[HEAD::2], strict=True)),
        longest={name: value / 1e9 for name, value in zip(SECTIONS, words[HEAD + 1 :: 2], strict=True)},
    )
