"""What a record's name covers, how long its log may be, and which of two records is the newer. All STAND-IN."""

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from rocmatrix.evidence import record as records_module
from rocmatrix.evidence.record import LOG_BYTES, Hardware, Record, Trouble, Verdict, is_name, once, ordered, present
from tests.fixtures.evidence import IMAGE, INPUTS, at, record


def plain(**fields):
    return Record.bounded(kind="build", at=at(0), cell="c", where="host", passed=True, log="", **fields)


def test_content_leaves_out_later_fields_that_say_nothing():
    hardware = Hardware(device="none")
    content = plain(hardware=hardware, verdicts=(Verdict(probe="a", status="pass"),)).content()
    assert {"trouble", "series", "number"}.isdisjoint(content)
    assert content["verdicts"] == [{"probe": "a", "status": "pass", "summary": "", "seconds": 0.0}]
    more = Verdict(probe="a", status="pass", cards=("x",), present=())
    trouble = Trouble(stage="disk", words="full")
    content = plain(hardware=hardware, verdicts=(more,), trouble=trouble).content()
    assert content["trouble"] == {"stage": "disk", "words": "full"}
    assert content["verdicts"][0] | {"cards": ["x"], "present": []} == content["verdicts"][0]
    assert content["image"] is None  # an earlier field stays


def test_name_of_a_record_is_the_hash_of_its_content_in_a_fixed_form():
    made = plain(hardware=Hardware(device="none"), versions={"torch": "2", "a": "\u00e9"})
    content = made.content()
    text = json.dumps(dict(sorted(content.items())), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert '"versions":{"a":"\u00e9","torch":"2"}' in text
    assert made.id == hashlib.sha256(text.encode()).hexdigest()
    described = made.described()
    assert (next(iter(described)), described) == ("id", {"id": made.id, **content})


def test_records_are_equal_by_their_content_and_not_by_their_place_in_a_file():
    made = record("build")
    assert made == made.model_copy(update={"series": "s", "number": 3})
    assert made != record("build", 1)
    assert made != made.content()


@pytest.mark.parametrize(
    ("device", "cards", "card"),
    [
        ("rocm", ("b", "a", "b"), "a + b"),
        ("rocm", (), "-"),
        ("cpu", (), "CPU"),
        ("cpu", ("x",), "x"),
        ("none", (), "-"),
    ],
)
def test_card_of_a_record_is_named_by_what_was_met(device, cards, card):
    assert record("smoke", hardware=Hardware(device=device, cards=cards)).card == card


def test_log_keeps_its_end_within_its_bytes_and_counts_what_was_left_out():
    short = record("build", log="words")
    assert (short.log, short.log_omitted) == ("words", 0)
    long = record("build", log="a" * 10 + "b" * LOG_BYTES)
    assert (long.log, long.log_omitted) == ("b" * LOG_BYTES, 10)
    cut = record("build", log="\u20ac" * LOG_BYTES)
    assert set(cut.log) == {"\u20ac"}
    assert len(cut.log.encode()) <= LOG_BYTES < len(cut.log.encode()) + 3
    assert cut.log_omitted == LOG_BYTES - len(cut.log)


def placed(hours, number, *, series="s", **fields):
    return record("build", hours, **fields).model_copy(update={"series": series, "number": number})


def numbers(*records):
    return [(each.series, each.number) for each in ordered(records)]


def test_number_decides_within_a_file_whatever_the_clock():
    back = [placed(9, 1), placed(3, 2), placed(5, 3)]
    for records in (back, back[::-1]):
        assert numbers(*records) == [("s", 1), ("s", 2), ("s", 3)]


def test_records_of_two_files_are_ordered_by_time_where_a_clock_set_back_moves_nothing_behind():
    own = [placed(9, 1), placed(3, 2)]
    other = [placed(8, 1, series="t"), placed(10, 2, series="t")]
    assert numbers(*own, *other) == [("t", 1), ("s", 1), ("s", 2), ("t", 2)]


def test_records_of_no_file_are_ordered_by_time_and_then_by_name():
    late, early = record("build", 5), record("build", 1)
    assert ordered([late, early]) == [early, late]
    one, two = (record("build", 5, image=image) for image in (IMAGE, None))
    assert one.inputs == two.inputs == INPUTS
    expected = sorted((one, two), key=lambda each: each.id)
    assert ordered([one, two]) == ordered([two, one]) == expected
    assert ordered([placed(2, 1), record("build", 1)])[0].series == ""


def test_clock_of_one_file_does_not_move_records_of_no_file():
    assert [each.series for each in ordered([record("build", 9), record("build", 1), placed(5, 1)])] == ["", "s", ""]


def test_records_of_one_moment_in_two_files_are_ordered_alike_however_they_come():
    for image in (None, IMAGE):  # by their files' names, whatever their own are
        one, two = placed(5, 1, series="s", image=image), placed(5, 1, series="t", image=None if image else IMAGE)
        assert numbers(one, two) == numbers(two, one) == [("s", 1), ("t", 1)]


def test_record_that_is_there_twice_stays_twice():
    assert len(ordered([record("build"), record("build")])) == 2
    assert len(ordered([placed(1, 1), placed(1, 1)])) == 2
    assert len(ordered([placed(1, 1), placed(1, 1, image=None)])) == 2  # of one place in one file, and yet two


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("AMD Radeon Graphics", "AMD Radeon Graphics (gfx1100)"),
        ("AMD Radeon(TM) Graphics", "AMD Radeon(TM) Graphics (gfx1100)"),
        ("AMD Radeon VII", "AMD Radeon VII"),
        ("AMD Radeon RX 7900 XT", "AMD Radeon RX 7900 XT"),
        ("AMD Instinct MI60 / MI50", "AMD Instinct MI60 / MI50 (gfx1100)"),
    ],
)
def test_card_whose_name_is_every_apus_is_named_with_its_instruction_set(name, card):
    assert (
        record("smoke", hardware=Hardware(device="rocm", cards=(name,), gfx=("gfx1100",), seen=("gfx1100",))).card
        == card
    )


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("AMD Radeon Graphics", "AMD Radeon Graphics (gfx1100, 1002:744c:cc)"),  # no amdgpu.ids in the image
        ("AMD Instinct MI60 / MI50", "AMD Instinct MI60 / MI50 (gfx1100, 1002:744c:cc)"),
        ("AMD Radeon RX 7900 XT", "AMD Radeon RX 7900 XT"),
    ],
)
def test_card_of_a_shared_name_is_named_with_its_pci_id(name, card):
    hardware = Hardware(device="rocm", cards=(name,), gfx=("gfx1100",), seen=("gfx1100",), ids=("1002:744c:cc",))
    assert record("smoke", hardware=hardware).card == card


def test_record_without_pci_ids_has_the_content_of_those_before_them():
    assert "ids" not in record("smoke", hardware=Hardware(device="rocm", cards=("a",))).content()["hardware"]
    made = record("smoke", hardware=Hardware(device="rocm", cards=("a",), ids=("1002:744c",)))
    assert made.content()["hardware"]["ids"] == ["1002:744c"]


def test_apu_next_to_a_card_of_another_name_gets_no_instruction_set_that_may_be_the_others():
    names = ("AMD Radeon Graphics", "AMD Radeon RX 7900 XTX")
    for seen in (("gfx1036", "gfx1100"), ("gfx1100",)):
        hardware = Hardware(device="rocm", cards=names, gfx=("gfx1036", "gfx1100"), seen=seen)
        assert record("smoke", hardware=hardware).card == "AMD Radeon Graphics + AMD Radeon RX 7900 XTX"
    twice = Hardware(device="rocm", cards=names[:1] * 2, gfx=("gfx1151",) * 2, seen=("gfx1151",))
    assert record("smoke", hardware=twice).card == "AMD Radeon Graphics (gfx1151)"


def test_time_that_is_yet_to_come_puts_nothing_in_front_of_what_came_since():
    ahead, next_one = placed(900, 1), placed(30, 2)
    other = placed(40, 1, series="t")
    for records in ([ahead, other], [ahead, next_one, other]):
        assert [each.series for each in ordered(records, now=at(50))][-1] == ("s" if len(records) == 2 else "t")
    assert numbers_at(50, placed(900, 1), placed(901, 2)) == [("s", 1), ("s", 2)]


def numbers_at(hours, *records):
    return [(each.series, each.number) for each in ordered(records, now=at(hours))]


def test_copied_file_that_both_machines_wrote_stands_by_its_times_from_there_on():
    before, own = placed(5, 1), placed(9, 2, passed=False)
    copied = [placed(6, 2), placed(7, 3), placed(8, 4)]
    assert ordered([*copied, own, before]) == [before, *copied, own]
    assert ordered([placed(6, 2), placed(3, 3), before]) == [before, placed(6, 2), placed(3, 3)]  # no copy: by number


@pytest.mark.parametrize("when", ["2026-02-30T12:00:00.000Z", "2026-13-01T12:00:00.000Z", "2026-01-01T25:00:00.000Z"])
def test_time_that_no_calendar_has_is_refused(when):
    with pytest.raises(ValueError, match="it is no date"):
        record("build").model_validate(record("build").model_dump() | {"at": when})


def test_time_of_a_record_is_utc_cut_to_the_millisecond(monkeypatch):
    moment = datetime(2026, 11, 1, 12, 0, 0, 123999, tzinfo=UTC)
    elsewhere = timezone(timedelta(hours=5))
    clock = SimpleNamespace(now=lambda zone: moment.astimezone(zone or elsewhere))
    monkeypatch.setattr(records_module, "datetime", clock)
    assert present() == "2026-11-01T12:00:00.123Z"


@pytest.mark.parametrize(
    ("name", "fits"),
    [("n-7", True), ("7" * 200, True), ("7" * 201, False), ("", False), ("-n", False), ("n 7", False), ("n7\n", False)],
)
def test_name_of_a_cell_or_night_is_one_word_of_bounded_length(name, fits):
    assert is_name(name) is fits


def test_record_of_this_very_moment_is_not_yet_to_come():
    other = placed(40, 1, series="t")
    assert numbers_at(50, placed(50, 1), placed(5, 2), other) == [("t", 1), ("s", 1), ("s", 2)]


def test_record_that_is_there_twice_makes_its_file_no_copy():
    assert numbers(placed(9, 1), placed(9, 1), placed(3, 2)) == [("s", 1), ("s", 1), ("s", 2)]


def test_copied_file_stands_by_its_times_from_the_first_number_that_both_machines_gave():
    one, two = placed(9, 2, passed=False), placed(10, 3, passed=False)
    assert ordered([one, placed(6, 2), two, placed(7, 3)]) == [placed(6, 2), placed(7, 3), one, two]


def test_records_of_one_moment_in_a_copied_file_are_ordered_alike_however_they_come():
    one, two, later = placed(9, 2, passed=False), placed(9, 2), placed(9, 3)
    first, second = sorted((one, two), key=lambda each: each.id)
    assert ordered([later, one, two]) == ordered([two, one, later]) == [first, second, later]


def test_object_in_which_a_key_stands_twice_is_refused():
    assert json.loads('{"a": 1, "b": 2}', object_pairs_hook=once) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="twice"):
        json.loads('{"a": 1, "a": 1}', object_pairs_hook=once)
