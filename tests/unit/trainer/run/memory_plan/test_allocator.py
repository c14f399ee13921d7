"""The simulated caching allocator: rounding, segments, reuse, joining, limits."""

import pytest

from trainer.run.memory_plan.allocator import CachingAllocator, DoesNotFitError, held_after_steps

MIB = 2**20


def test_allocator_with_odd_sizes_rounds_to_512_bytes():
    allocator = CachingAllocator()
    allocator.allocate(1)
    allocator.allocate(513)
    assert allocator.allocated == 512 + 1024
    assert allocator.reserved == 2 * MIB  # one segment of the small pool


def test_allocator_segments_follow_the_size_of_the_first_block():
    allocator = CachingAllocator()
    allocator.allocate(2 * MIB)
    assert allocator.reserved == 20 * MIB
    allocator.allocate(11 * MIB)  # fits what is left of it
    assert allocator.reserved == 20 * MIB
    allocator.allocate(11 * MIB)
    assert allocator.reserved == 20 * MIB + 12 * MIB


def test_allocator_keeps_a_rest_of_a_mebibyte_with_the_block():
    allocator = CachingAllocator()
    allocator.allocate(12 * MIB - 512)
    assert allocator.allocated == 12 * MIB


def test_allocator_joins_free_neighbours():
    allocator = CachingAllocator()
    blocks = [allocator.allocate(5 * MIB) for _ in range(4)]
    for block in (blocks[1], blocks[0], blocks[3], blocks[2]):
        allocator.release(block)
    assert allocator.allocated == 0
    allocator.allocate(20 * MIB - 512)
    assert allocator.reserved == 20 * MIB


def test_allocator_with_pieces_in_use_cannot_join_across_them():
    allocator = CachingAllocator()
    blocks = [allocator.allocate(5 * MIB) for _ in range(4)]
    allocator.release(blocks[0])
    allocator.release(blocks[2])
    allocator.allocate(9 * MIB)
    assert allocator.reserved == 40 * MIB


def test_allocator_at_its_limit_gives_unused_segments_back_first():
    allocator = CachingAllocator(limit=64 * MIB)
    allocator.release(allocator.allocate(40 * MIB))
    allocator.allocate(50 * MIB)
    assert allocator.reserved == 50 * MIB
    with pytest.raises(DoesNotFitError, match="20,971,520 bytes"):
        allocator.allocate(20 * MIB)


def test_states_made_within_the_first_step_take_a_place_that_the_next_step_needs():
    record = [(0, 40 * MIB), (0, -1)]  # one step: a large tensor, given back before the optimizer steps
    first = held_after_steps(CachingAllocator(), record, states_at=2, states=[])
    later = held_after_steps(CachingAllocator(), record, states_at=2, states=[12 * MIB])
    assert first == 40 * MIB
    assert later == 80 * MIB  # the state is in the first segment, and 40 MiB no longer fit there


def test_gradients_of_a_step_are_given_back_before_the_next():
    record = [(0, 30 * MIB), (1, 12 * MIB), (0, -1)]
    assert held_after_steps(CachingAllocator(), record, states_at=3, states=[]) == 42 * MIB


def test_allocator_of_two_free_blocks_of_one_size_takes_that_of_the_newer_segment():
    allocator = CachingAllocator()
    older, newer = (allocator.allocate(12 * MIB) for _ in range(2))
    for block in (older, newer):
        allocator.release(block)
    assert allocator.allocate(12 * MIB) is newer


def test_record_numbers_releases_by_their_allocation():
    allocator = CachingAllocator()
    early = allocator.allocate(512)
    allocator.record = []
    block = allocator.allocate(1024)
    allocator.release(early)
    allocator.release(block)
    assert allocator.record == [(0, 1024), (-1, -1), (0, -1)]
