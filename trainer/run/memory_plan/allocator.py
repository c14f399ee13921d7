"""Torch's caching allocator, simulated: what a device holds for tensors, and what it loses between them.

Constants and rules are those of c10/cuda/CUDACachingAllocator.cpp (torch 2.13), with its default settings. HIP builds
use the same file.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

ROUND = 512  # bytes; every size is a multiple of it
SMALL = 2**20  # up to this size a block comes from the small pool
SMALL_SEGMENT, LARGE_SEGMENT = 2**21, 20 * 2**20
LARGEST_IN_SEGMENT = 10 * 2**20  # from this size on a segment is made for the block alone
ROUND_LARGE = 2**21
STEPS = 3  # after which what is held grew no more in the recorded runs


class DoesNotFitError(Exception):
    """The simulated device has no memory left; `requested` bytes were not there."""

    def __init__(self, requested: int) -> None:
        super().__init__(f"{requested:,} bytes")
        self.requested = requested


@dataclass(kw_only=True, eq=False)
class Block:
    """A piece of a segment: `size` bytes, of which `requested` were asked for, with its neighbours in the segment.

    address: of two free blocks of one size torch takes the lower; a new segment is taken to be below those before it,
    as in the recorded runs (the other way round one of 60 was planned 14 % too high). number: of the allocation that
    it serves, in the allocator's record.
    """

    size: int
    address: int = 0
    requested: int = 0
    number: int = -1
    small: bool
    free: bool = False
    before: Block | None = None
    after: Block | None = None


@dataclass(kw_only=True)
class CachingAllocator:
    """One device. `limit`: bytes that it has for this process; None for no limit.

    record: (number, bytes) of each allocation, (number, -1) of each release, from the moment that it is a list on.
    """

    limit: int | None = None
    allocated: int = 0
    reserved: int = 0
    record: list[tuple[int, int]] | None = None
    _lowest: int = 2**48
    _free: dict[bool, list[tuple[int, int, Block]]] = field(default_factory=lambda: {True: [], False: []})

    def allocate(self, size: int) -> Block:
        """Return a block of at least `size` bytes.

        Raises:
            DoesNotFitError: where the limit would be passed, unused segments given back first.
        """
        requested, size = size, max(-(-size // ROUND) * ROUND, ROUND)
        small = size <= SMALL
        block = self._found(size, small) or self._segment(size, small)
        least = ROUND if small else SMALL + 1
        if block.size - size >= least:
            self._split(block, size)
        block.free, block.requested = False, requested
        self.allocated += block.size
        if self.record is not None:
            block.number = len(self.record)
            self.record.append((block.number, requested))
        return block

    def fresh(self) -> CachingAllocator:
        """Return one of the same limit in which nothing is allocated."""
        return CachingAllocator(limit=self.limit)

    def release(self, block: Block) -> None:
        """Give a block back; it joins free neighbours."""
        self.allocated -= block.size
        if self.record is not None:
            self.record.append((block.number, -1))
        for other in (block.before, block.after):
            if other is not None and other.free:
                self._remove(other)
                self._join(block, other)
        block.free = True
        insort(self._free[block.small], (block.size, block.address, block))

    def _found(self, size: int, small: bool) -> Block | None:
        """Take the smallest free block that is large enough."""
        free = self._free[small]
        place = bisect_left(free, (size, -1))
        return free.pop(place)[2] if place < len(free) else None

    def _segment(self, size: int, small: bool) -> Block:
        if small:
            whole = SMALL_SEGMENT
        else:
            whole = LARGE_SEGMENT if size < LARGEST_IN_SEGMENT else -(-size // ROUND_LARGE) * ROUND_LARGE
        if self.limit is not None and self.reserved + whole > self.limit:
            self._trim()
            if self.reserved + whole > self.limit:
                raise DoesNotFitError(size)
        self.reserved += whole
        self._lowest -= whole
        return Block(size=whole, small=small, address=self._lowest)

    def _trim(self) -> None:
        """Give segments without a block in use back to the device."""
        for free in self._free.values():
            for entry in [each for each in free if each[2].before is None and each[2].after is None]:
                free.remove(entry)
                self.reserved -= entry[0]

    def _split(self, block: Block, size: int) -> None:
        rest = Block(size=block.size - size, small=block.small, free=True, before=block, after=block.after)
        rest.address = block.address + size
        if rest.after is not None:
            rest.after.before = rest
        block.after, block.size = rest, size
        insort(self._free[rest.small], (rest.size, rest.address, rest))

    def _remove(self, block: Block) -> None:
        free = self._free[block.small]
        free.pop(bisect_left(free, (block.size, block.address)))

    def _join(self, block: Block, other: Block) -> None:
        block.size += other.size
        if other is block.before:
            block.address, block.before = other.address, other.before
            if block.before is not None:
                block.before.after = block
        else:
            block.after = other.after
            if block.after is not None:
                block.after.before = block


def held_after_steps(
    allocator: CachingAllocator, record: Sequence[tuple[int, int]], *, states_at: int, states: Sequence[int]
) -> int:
    """Return the bytes that an allocator holds at most in STEPS steps, the optimizer's states made in the first.

    They are made among what the first step's activations have left free, so that the next step's largest tensors find
    no place there: segments are added up to the third step.

    Args:
        allocator: with what is there before the first step.
        record: of one step, see `CachingAllocator`.
        states_at: place in the record at which the optimizer steps.
        states: bytes of each state, in the order in which they are made.

    Raises:
        DoesNotFitError: where the allocator's limit would be passed.
    """
    for number in range(STEPS):
        live: dict[int, Block] = {}
        _replayed(allocator, record[:states_at], live)
        for size in states if number == 0 else ():
            allocator.allocate(size)
        _replayed(allocator, record[states_at:], live)
        for block in live.values():  # gradients and the batch, before the next step begins
            allocator.release(block)
    return allocator.reserved


def _replayed(allocator: CachingAllocator, record: Sequence[tuple[int, int]], live: dict[int, Block]) -> None:
    for number, size in record:
        if size >= 0:
            live[number] = allocator.allocate(size)
        elif number in live:
            allocator.release(live.pop(number))


@dataclass(kw_only=True)
class PlainAllocator:
    """A host's allocator as torch reports it: each tensor takes its bytes."""

    allocated: int = 0

    @property
    def reserved(self) -> int:
        """The same as what is allocated."""
        return self.allocated

    def fresh(self) -> PlainAllocator:
        """Return one in which nothing is allocated."""
        return PlainAllocator()

    def allocate(self, size: int) -> Block:
        """Return a block of `size` bytes."""
        self.allocated += size
        return Block(size=size, requested=size, small=False)

    def release(self, block: Block) -> None:
        """Give a block back."""
        self.allocated -= block.size
