"""Two nights, two checkouts and two builds on one real engine, at the same time. Machines are SIMULATED."""

import os
import subprocess

import pytest

from rocmatrix.containers import engine_lock
from tests.container.rehearsal import checkout
from tests.container.rehearsal.scenario import CANDIDATE, GREEN, TAG
from tests.left_out import long

pytestmark = pytest.mark.container


# Two at once.


@long
def test_second_of_two_nights_at_once_is_refused(play):
    night = play.paused_night()
    second = play.checkout.night()
    assert (second.status, "RM671" in second.text) == (2, True)
    play.checkout.paused.unlink()
    assert night.end().status == 0
    play.says(*GREEN)


@long
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


@long
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


@pytest.fixture
def elsewhere(client, tmp_path):
    """Return the command that enters another machine: host name, processes and lock files of its own, one engine."""
    shared, own = engine_lock.place(client, "any").parent, tmp_path / "locks"
    own.mkdir()
    words = f"hostname rocmatrix-test-lab && mount --bind {own} {shared} && exec "
    command = ("unshare", "--uts", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c")
    if subprocess.run([*command, f"{words} true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces may be made here")
    return (*command, f'{words} "$0" "$@"')


@long
def test_machines_on_one_engine_keep_apart_without_a_file_that_they_share(play, new_checkout, elsewhere, client):
    other = new_checkout(enter=elsewhere)
    other.change_trainer()
    other.play()
    night = play.paused_night()
    refused = other.night()
    named = f"a program on {os.uname().nodename} of this engine, volume rocmatrix-lock-"
    assert (refused.status, named in refused.text) == (2, True), refused.text
    play.checkout.paused.unlink()
    assert night.end().status == 0
    play.checkout.change_trainer()
    argv = ("build", "--cell", checkout.GFX1100, "--base", other.base, "--wheelhouse")
    both = [each.begin(*argv, str(each.place / "wheels")) for each in (play.checkout, other)]
    assert [each.end().status for each in both] == [0, 0], [each.text for each in both]
    assert "another checkout on this engine builds" in "".join(each.text for each in both)
    images = [each.truth().records[-1]["image"] for each in (play.checkout, other)]
    assert images[0] != images[1]
    assert play.tag in images
    marks = [
        volume.attrs["Labels"][engine_lock.TAG] for volume in client.volumes.list(filters={"label": engine_lock.TAG})
    ]
    assert not {CANDIDATE, TAG} & {*marks}  # builds of other tests may run on this engine
