"""Two nights, two checkouts and two builds on one real engine, at the same time. Machines are SIMULATED."""

import pytest

from tests.container.rehearsal import checkout
from tests.container.rehearsal.scenario import CANDIDATE, GREEN

pytestmark = pytest.mark.container


# Two at once.


def test_second_of_two_nights_at_once_is_refused(play):
    night = play.paused_night()
    second = play.checkout.night()
    assert (second.status, "RM671" in second.text) == (2, True)
    play.checkout.paused.unlink()
    assert night.end().status == 0
    play.says(*GREEN)


def test_first_of_two_checkouts_on_one_engine_continues_and_each_has_its_own_records(play, new_checkout):
    other = new_checkout()
    other.change_trainer()
    other.play()
    night = play.paused_night()
    refused = other.night()
    assert (refused.status, f"works on {CANDIDATE}" in refused.text) == (2, True), refused.text
    play.checkout.paused.unlink()
    assert night.end().status == 0
    ended = other.night()
    assert ended.status == 0, ended.text
    assert "which was an image of other inputs" in ended.text
    assert other.truth().level == "two-gpu"
    assert play.tag == other.truth().records[-1]["image"]
    truth = play.checkout.truth()  # the level is that of its own image; the tag is the other's until its next night
    assert (truth.level, truth.records[-1]["image"]) == (*GREEN, play.before)


def test_builds_at_once_each_record_the_image_they_made(play, new_checkout):
    other = new_checkout()
    play.checkout.change_trainer()
    other.change_trainer()
    argv = ("build", "--cell", checkout.GFX1100, "--base", other.base, "--wheelhouse")
    both = [each.begin(*argv, str(each.place / "wheels")) for each in (play.checkout, other)]
    assert [each.end().status for each in both] == [0, 0], [each.text for each in both]
    images = [each.truth().records[-1]["image"] for each in (play.checkout, other)]
    assert images[0] != images[1]
    assert play.tag in images
