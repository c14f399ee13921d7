"""What fits is decided from estimates far from the budget and from whole runs near it. Footprints are made up here."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fixtures.footprints import SMALL
from trainer.run.memory_plan import fit as plans
from trainer.run.memory_plan.cards import CONTEXT, Card
from trainer.run.memory_plan.live_memory import Peak
from trainer.run.memory_plan.program import Footprint
from trainer.run.memory_plan.shapes import Program

MIB = 2**20
PROGRAM = Program(raw={}, sequence=4096)


def card(budget: int, peak: Any = None) -> Card:
    return Card(
        name="made up", arch="gfx1100", memory=CONTEXT + budget, why="", fused="yes", precision="bf16", peak=peak
    )


def footprint(allocated: int, reserved: int | None = None) -> Footprint:
    peak = Peak(allocated=allocated, reserved=allocated if reserved is None else reserved, parts={})
    return Footprint(peaks={"step": peak}, flops=1e12, wide_flops=1e10, trained=10, all=10)


@pytest.fixture
def sized(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A step takes 100 MiB and 50 MiB a row, by estimate and as measured; the rows that were measured are noted."""
    exact: list[int] = []
    monkeypatch.setattr(plans, "least_bytes", lambda program: 0)

    def size(program: Program) -> Footprint:
        return footprint((100 + 50 * program.rows) * MIB)

    def measured(program: Program, limit: int | None = None) -> Footprint:
        exact.append(program.rows)
        return size(program)

    monkeypatch.setattr(plans, "estimated", size)
    monkeypatch.setattr(plans, "measured", measured)
    return exact


@pytest.mark.parametrize(
    ("budget", "fits", "measured"),
    [
        (1000, True, False),
        (252, True, False),  # 1.25 of 150 MiB and 64 MiB of segments are 251.5
        (251, True, True),
        (150, True, True),
        (149, False, True),
        (143, False, True),
        (142, False, False),  # 0.95 of 150 MiB are 142.5
        (10, False, False),
    ],
)
def test_estimate_near_the_budget_is_decided_by_a_whole_run(
    sized: list[int], budget: int, fits: bool, measured: bool
) -> None:
    found = plans.fit(replace(PROGRAM, rows=1), card(budget * MIB))
    assert found.fits is fits
    assert bool(sized) is measured


@pytest.mark.parametrize(
    ("budget", "rows"),
    [(100, None), (149, None), (150, 1), (211, 1), (213, 2), (317, 2), (319, 4), (953, 8), (955, 16), (1803, 32)],
)
def test_largest_micro_batch_is_a_power_of_two_that_fits_with_what_the_allocator_holds(
    sized: list[int], budget: int, rows: int | None
) -> None:
    found = plans.largest_fit(PROGRAM, card(budget * MIB))
    assert (found and found.program.rows) == rows


def test_micro_batch_of_many_tokens_that_is_near_the_budget_is_halved_without_a_whole_run(sized: list[int]) -> None:
    found = plans.largest_fit(PROGRAM, card(7000 * MIB))  # 128 rows of 4,096 tokens take 6,500 MiB
    assert found is not None
    assert (found.program.rows, sized) == (64, [])


@pytest.mark.parametrize(
    ("budget", "rows", "pieces", "fits"),
    [(1000, 8, 1, True), (400, 4, 2, True), (151, 1, 2, True), (100, 1, 2, False)],
)
def test_first_size_is_all_rows_or_the_largest_power_of_two_in_pieces(
    sized: list[int], budget: int, rows: int, pieces: int, fits: bool
) -> None:
    found = plans.first_size(PROGRAM, card(budget * MIB), 8)
    assert (found.program.rows, found.program.pieces, found.fits) == (rows, pieces, fits)


@pytest.mark.parametrize(("most", "rows"), [(0, None), (1, 1), (3, 2), (4, 4), (5000, 32)])
def test_largest_micro_batch_stays_within_the_rows_that_are_allowed(
    sized: list[int], most: int, rows: int | None
) -> None:
    found = plans.largest_fit(PROGRAM, card(2000 * MIB), most_rows=most)
    assert (found and found.program.rows) == rows


@pytest.mark.parametrize(
    ("budget", "square", "most", "longest"),
    [
        (1000, 0, 4096, 4096),
        (300, 0, 4096, 3712),  # 1.06 x (100 + 50 x 3.625) MiB are 298
        (300, 1, 4096, 1408),
        (400, 0, 1000, 1000),
        (90, 0, 4096, 0),
        (4000, 1, 2**20, 8192),
    ],
)
def test_longest_row_fits_and_the_next_length_does_not(
    monkeypatch: pytest.MonkeyPatch, budget: int, square: int, most: int, longest: int
) -> None:
    """A row takes 100 MiB, 50 MiB a 1,024 tokens, and with `square` as much again for the square of them."""
    tried: list[int] = []

    def need(tokens: int) -> int:
        return round((100 + 50 * tokens / 1024 + square * 50 * (tokens / 1024) ** 2) * MIB)

    def size(program: Program) -> Footprint:
        tried.append(program.sequence)
        return footprint(need(program.sequence))

    monkeypatch.setattr(plans, "estimated", size)
    monkeypatch.setattr(plans, "measured", lambda program, limit=None: footprint(round(1.06 * need(program.sequence))))
    attention = ("math", "math") if square else ("flash", "efficient")
    program = replace(PROGRAM, raw={"max_position_embeddings": most}, attention=attention)
    assert plans.longest_row(program, card(budget * MIB)) == longest
    assert len(tried) <= 4 and max(tried) <= most
    assert longest == 0 or plans.REST * need(longest) <= budget * MIB
    assert longest == most or plans.REST * need(longest + plans.TOKENS) > budget * MIB


def test_allocator_that_gives_memory_back_is_tried_where_tensors_alone_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int | None] = []

    def measured(program: Program, limit: int | None = None) -> Footprint:
        limits.append(limit)
        return footprint(100 * MIB, reserved=(130 if limit is None else 110) * MIB)

    monkeypatch.setattr(plans, "measured", measured)
    assert plans.exact_fit(PROGRAM, card(120 * MIB)).need == 110 * MIB
    assert limits == [None, 120 * MIB]
    limits.clear()
    assert plans.exact_fit(PROGRAM, card(130 * MIB)).fits  # without a limit already
    assert not plans.exact_fit(PROGRAM, card(99 * MIB)).fits  # tensors alone do not
    assert limits == [None, None]


@pytest.mark.parametrize(("whole", "fits"), [(105, True), (95, False)])
def test_shards_that_hold_no_more_than_the_whole_fit_where_it_does(
    monkeypatch: pytest.MonkeyPatch, whole: int, fits: bool
) -> None:
    def measured(program: Program, limit: int | None = None) -> Footprint:
        size = 100 if program.shards > 1 else whole
        return footprint(size * MIB, reserved=(130 if limit is None else 110) * MIB)

    monkeypatch.setattr(plans, "measured", measured)
    assert plans.exact_fit(replace(PROGRAM, shards=4), card(120 * MIB), cards=4).fits is fits


def test_gradients_of_several_cards_take_room_and_a_tenth_of_the_least_rate(sized: list[int]) -> None:
    peak = SimpleNamespace(flops=lambda precision: 1e14 if precision == "bf16" else 1e13)
    one, two = (plans.fit(PROGRAM, card(1000 * MIB, peak), cards=cards) for cards in (1, 2))
    assert one.budget - two.budget == 4 * 10
    assert one.rate is not None and two.rate is not None
    seconds = 1e12 / 1e14 + 1e10 / 1e13
    assert one.rate == pytest.approx([share * 4096 / seconds for share in plans.SHARES])
    assert two.rate == pytest.approx([0.9 * 2 * one.rate[0], 2 * one.rate[1]])


def test_card_without_a_peak_has_no_rate(sized: list[int]) -> None:
    found = plans.fit(PROGRAM, card(1000 * MIB))
    assert found.rate is None and found.facts()["tokens_per_second"] is None
    unknown = SimpleNamespace(flops=lambda precision: None if precision == "bf16" else 1e13)
    assert plans.fit(PROGRAM, card(1000 * MIB, unknown)).rate is None


def test_weights_that_do_not_fit_are_refused_without_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any) -> Footprint:
        raise AssertionError("a step was run")

    program = replace(PROGRAM, raw=SMALL)
    held = plans.least_bytes(program)
    assert [plans.least_bytes(replace(program, **how)) for how in ({"adapter": "lora"}, {"shards": 2})] == [0, 0]
    monkeypatch.setattr(plans, "estimated", run)
    assert plans.largest_fit(program, card(held - 1)) is None
    with pytest.raises(AssertionError):
        plans.largest_fit(program, card(held))


def test_bytes_are_shown_in_gib() -> None:
    assert plans.gib(1.5 * 2**30) == "1.5"
    assert plans.gib(2000 * 2**30) == "2,000.0"
