"""A night broken at each link on a real engine: level, tag and page state what is true, and the next night is green.

Machines, wheels and trainer are STAND-INS. Every scenario begins with a green cell and ends with one.
"""

import io
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from rocmatrix.containers import engine, owner, seal
from tests.container.rehearsal import checkout as making
from tests.container.rehearsal.proxy import Proxy

pytestmark = pytest.mark.container

TAG = f"rocmatrix:simulated-{making.GFX1100}"
CANDIDATE = f"rocmatrix:night-simulated-{making.GFX1100}"
PROBES = dict.fromkeys(("blas", "conv"), "fail")
GREEN = ("two-gpu",)
long = pytest.mark.skipif(
    os.environ.get("ROCMATRIX_REHEARSAL") != "whole",
    reason="a scenario much like others; ROCMATRIX_REHEARSAL=whole plays it, too",
)
IMPATIENT = {"rocmatrix.evidence.schema.WAIT_SECONDS": 0.5}


class Play:
    """One scenario's means: the checkout, the engine, and what the tag meant when it began."""

    def __init__(self, checkout, client, folder):
        self.checkout, self.client, self.folder = checkout, client, folder
        self.before = self.tag

    @property
    def tag(self):
        found = engine.image(self.client, TAG)
        return found and found.id

    def says(self, level, *failures, moved=False):
        """Hold level, failures, page and tag against what is true. Where it `moved`, the tag is the newest record's."""
        truth = self.checkout.truth()
        assert (truth.level, truth.failures) == (level, list(failures)), truth.standing
        assert (self.tag == self.before) or moved
        assert not moved or self.tag == truth.records[-1]["image"]
        return truth

    def proxied(self, seen):
        return Proxy(self.folder / "engine.sock", seen)

    def paused_night(self, probe="conv", **more):
        self.checkout.play(pause=probe)
        night = self.checkout.begin_night(**more)
        night.until(self.checkout.paused.exists)
        return night

    def jobs(self, **filters):
        return self.client.containers.list(filters={"label": owner.LABEL}, ignore_removed=True, **filters)


@pytest.fixture(scope="module")
def green(checkout):
    checkout.play()
    ended = checkout.night()
    assert ended.status == 0, ended.text
    truth = checkout.truth()
    assert (truth.level, truth.failures) == (*GREEN, [])
    return checkout


@pytest.fixture
def play(green, client, tmp_path):
    """Let a test break the chain; then hold the next night to green, with nothing said to it of what was before."""
    made = Play(green, client, tmp_path)
    yield made
    green.environment = {}
    green.play()
    ended = green.night()
    assert ended.status == 0, ended.text
    truth = green.truth()
    assert (truth.level, truth.failures) == (*GREEN, []), (truth.standing, ended.text)
    assert made.tag == truth.records[-1]["image"] == engine.image(client, CANDIDATE).id
    assert not made.jobs(all=True)


@pytest.fixture
def refused(green, client, tmp_path):
    """Let a test keep a night from beginning. Nothing is mended after it: that nothing has changed is what it shows."""
    return Play(green, client, tmp_path)


@contextmanager
def locked(path, seconds=0.0):
    """Hold the evidence file as a writer that does not end."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@contextmanager
def small_disk(folder, *, kilobytes, content=None):
    """Mount a small file system over a folder, with what is in it; fill it to the last byte."""
    kept = [path for path in folder.iterdir() if path.is_file()] if content is None else content
    saved = {path.name: path.read_bytes() for path in kept}
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)], check=True)
    try:
        for name, data in saved.items():
            (folder / name).write_bytes(data)
        yield
        back = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "filler"}
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    for name, data in back.items():
        (folder / name).write_bytes(data)


def fill(folder):
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)


def forged(client, *, sealed):
    """Return an image made of the candidate with the trainer changed, under the same labels."""
    text = f"FROM {CANDIDATE}\nUSER 0\nRUN echo '# EVIL' >> /opt/rocmatrix/trainer/__init__.py\nUSER 10001:10001\n"
    tag = "rocmatrix:simulated-forged"
    client.images.build(fileobj=io.BytesIO(text.encode()), tag=tag, rm=True)
    if sealed:
        seal.put(client, tag)
    return client.images.get(tag)


# A night that is killed, at each of its stages.


def test_killed_while_it_plans_leaves_no_trace(play):
    with locked(play.checkout.evidence):
        night = play.checkout.begin_night()
        night.until((play.checkout.place / ".rocmatrix/nightly/night.lock").exists)
        time.sleep(1)
        night.kill()
    play.says(*GREEN)


def test_killed_while_it_builds_keeps_level_and_tag_of_the_image_before(play):
    play.checkout.change_trainer()
    night = play.checkout.begin_night()
    night.until(lambda: play.checkout.leg("build") == "running")
    night.until(lambda: "[internal]" in night.text)
    night.kill()
    assert play.tag == play.before
    assert play.checkout.truth().level in ("two-gpu", "built")  # the builder may have ended in that moment


def test_killed_while_it_proves_leaves_an_image_that_is_built_only(play):
    play.checkout.change_trainer()
    night = play.checkout.begin_night()
    night.until(lambda: play.checkout.leg("prove") == "running")
    night.until(lambda: play.jobs(all=True))  # the container of the export
    night.kill()
    play.says("built")


def test_killed_in_smoke_counts_as_failed_and_its_container_is_removed(play):
    night = play.paused_night()
    night.kill()
    assert play.jobs()  # it runs on, and holds the cards
    assert play.says("proven", "smoke", *failed_without_verdict(play)).records[-1]["passed"] is False


def failed_without_verdict(play):
    """The probes of a lost suite: all that were asked for, for none came back."""
    probes = making.json.loads((play.checkout.place / "trainer/probes.json").read_text())
    return [probe["probe"] for probe in probes]


def test_killed_while_it_records_a_smoke_that_passed_is_a_run_that_was_lost(play):
    night = play.paused_night()
    with locked(play.checkout.evidence):
        play.checkout.paused.unlink()
        night.until(lambda: not play.jobs(all=True))
        time.sleep(0.5)
        night.kill()
    play.says("proven", "smoke", *failed_without_verdict(play))


@pytest.mark.parametrize("moved", [pytest.param(False, marks=long), True])
def test_killed_while_it_promotes_has_moved_the_tag_or_not(play, moved):
    play.checkout.change_trainer()
    reached = threading.Event()

    def seen(block):
        if b"/tag?" not in block or b"tag=night-" in block.partition(b"\r\n")[0]:
            return None
        reached.set()
        return "mute" if moved else "stall"

    proxy = play.proxied(seen)
    play.checkout.environment = proxy.environment
    night = play.checkout.begin_night()
    night.until(reached.is_set)
    time.sleep(0.5)
    night.kill()
    proxy.gone()
    play.checkout.environment = {}
    play.says(*GREEN, moved=moved)


def test_a_dashboard_that_is_killed_leaves_whole_pages_only(play):
    page = play.checkout.place / "page"
    shutil.rmtree(page, ignore_errors=True)
    writing = play.checkout.begin("dashboard", "--out", str(page))
    with suppress(AssertionError):
        writing.until((page / "index.html").exists)
    writing.kill()
    written = list(page.rglob("*.html"))
    assert all(each.read_text().rstrip().endswith("</html>") for each in written)
    play.says(*GREEN)
    assert len(list((page / "cells").glob("*.html"))) > 20


# What goes wrong with the card, the suite or the container.


@pytest.mark.parametrize(
    ("scene", "failures"),
    [
        pytest.param({"probes": PROBES}, ["blas", "conv"], id="probes-fail"),
        pytest.param({"probes": {"two_gpu_step": "fail"}, "silent": [1]}, ["two_gpu_step"], id="second-card-silent"),
        pytest.param({"status": 3}, ["the suite"], id="suite-ends-with-3", marks=long),
    ],
)
def test_a_smoke_that_fails_takes_the_level_and_moves_no_tag(play, scene, failures):
    play.checkout.change_trainer()
    play.checkout.play(**scene)
    ended = play.checkout.night()
    assert ended.status == 2
    assert "RM630" in ended.text
    assert all(f"{name} regressed" in ended.text for name in failures if name != "the suite")
    play.says("proven", "smoke", *failures)


def test_a_suite_that_dies_in_the_middle_of_a_line_has_failed_from_there_on(play):
    play.checkout.play(cut="conv")
    ended = play.checkout.night()
    assert ended.status == 2
    every = failed_without_verdict(play)
    play.says("proven", "smoke", *every[every.index("conv") :])


def test_a_container_that_is_killed_in_smoke_has_failed(play):
    night = play.paused_night("rng")
    (job,) = play.jobs()
    job.kill()
    ended = night.end()
    assert ended.status == 2
    every = failed_without_verdict(play)
    truth = play.says("proven", "smoke", *every[every.index("rng") :])
    assert truth.records[-1].get("trouble") is None


def test_a_container_that_is_killed_in_prove_proves_nothing(play):
    shutil.rmtree(play.checkout.place / ".rocmatrix" / "byte-code")
    night = play.checkout.begin_night()
    night.until(play.jobs)  # the one that compiles again
    for job in play.jobs():
        job.kill()
    ended = night.end()
    assert ended.status == 2
    play.says("built", "prove")


def test_an_export_that_is_removed_under_the_proof_is_trouble_of_the_host(play):
    night = play.checkout.begin_night()
    night.until(lambda: play.jobs(all=True))
    for job in play.jobs(all=True):
        job.remove(force=True)
    ended = night.end()
    if "prove passed" in ended.text:
        pytest.skip("the export was over before it could be broken off")
    assert ended.status == 2
    truth = play.says(*GREEN)
    assert truth.standing["troubles"] == 1


def test_a_card_that_is_missing_is_named_as_a_verdict_that_vanished(play):
    whole = play.checkout.tree
    play.checkout.tree = making.machine(play.folder / "one", making.sysfs.RX_7900_XT, cards=1)
    ended = play.checkout.night()
    play.checkout.tree = whole
    assert ended.status == 2
    assert "two_gpu_step vanished" in ended.text
    play.says(*GREEN)  # of the newest run that held a verdict on two cards


def test_without_a_card_nothing_is_smoked_and_nothing_moves(play):
    play.checkout.change_trainer()
    whole = play.checkout.tree
    play.checkout.tree = making.machine(play.folder / "none", making.sysfs.RX_7900_XT, cards=0)
    ended = play.checkout.night()
    play.checkout.tree = whole
    assert "smoke left out (this machine has no gfx1100 card)" in ended.text
    play.says("proven")


# Images that are not what their tag says.


def test_a_build_that_fails_keeps_the_tag(play):
    pruner = play.checkout.place / "rocmatrix" / "verify" / "inside" / "prune.py"
    text = pruner.read_text()
    pruner.write_text("raise SystemExit('broken for the rehearsal')\n")
    ended = play.checkout.night()
    pruner.write_text(text)
    assert (ended.status, "RM202" in ended.text) == (2, True), ended.text
    play.says("rendered", "build")


@pytest.mark.parametrize("sealed", [pytest.param(False, marks=long), True])
def test_a_tampered_image_under_both_tags_is_neither_smoked_nor_kept(play, sealed):
    evil = forged(play.client, sealed=sealed)
    for tag in (TAG, CANDIDATE):
        evil.tag(*tag.split(":"))
    assert play.checkout.night().status == 0
    truth = play.says(*GREEN, moved=True)
    assert all(record["image"] != evil.id for record in truth.records)


def test_a_tampered_image_that_is_proven_by_hand_is_refused_and_counts(play):
    evil = forged(play.client, sealed=True)
    wheels = str(play.checkout.place / "wheels")
    ended = play.checkout.run("prove", "--cell", making.GFX1100, "--image", evil.id, "--wheelhouse", wheels)
    assert ended.status == 2
    assert "RM661" in ended.text
    play.says("built", "prove")


def test_a_wrong_image_that_takes_the_candidates_tag_before_smoke_is_not_promoted(play):
    """It has every label and a seal, and passes every probe: what it lacks is a proof."""
    play.checkout.change_trainer()
    evil, before = [], play.before

    def seen(block):
        asks = block.startswith(b"GET") and b"/images/" in block and b"night-simulated" in block.partition(b"\r\n")[0]
        if asks and not evil and play.checkout.leg("smoke") == "running":
            evil.append(forged(play.client, sealed=True))
            evil[0].tag(*CANDIDATE.split(":"))

    proxy = play.proxied(seen)
    play.checkout.environment = proxy.environment
    play.checkout.play()
    ended = play.checkout.night()
    proxy.gone()
    play.checkout.environment = {}
    assert evil
    assert (ended.status, "RM652" in ended.text) == (2, True), ended.text
    assert play.tag == before
    truth = play.says("proven")
    assert truth.records[-1]["image"] == evil[0].id
    assert truth.records[-1]["passed"] is True  # and yet it shows nothing of the cell's image
    assert "it ran in an image that no build or proof on record names" not in truth.page  # the mark is named first


def test_a_promoted_tag_that_somebody_moved_is_moved_back_and_it_is_said(play):
    play.client.images.get(play.checkout.base).tag(*TAG.split(":"))
    ended = play.checkout.night()
    assert ended.status == 0
    assert "which was an image of other inputs" in ended.text
    play.says(*GREEN)


def test_an_older_image_that_is_promoted_again_has_the_level_of_its_own(play):
    before = play.says(*GREEN)
    older = play.checkout.change_trainer()
    play.checkout.play(probes={"blas": "fail"})
    assert play.checkout.night().status == 2
    play.says("proven", "smoke", "blas")
    play.checkout.change_trainer(older)
    play.checkout.play()
    assert play.checkout.night().status == 0
    truth = play.says(*GREEN, moved=True)
    assert truth.standing["inputs"] == before.standing["inputs"]


# The host: engine, disk, clock, evidence file.


def test_an_engine_that_is_not_there_begins_nothing(refused):
    refused.checkout.environment = {"DOCKER_HOST": f"unix://{refused.folder}/none.sock"}
    ended = refused.checkout.night()
    refused.checkout.environment = {}
    assert (ended.status, "RM201" in ended.text) == (2, True)
    refused.says(*GREEN)


@pytest.mark.parametrize(
    "stage", [pytest.param("build", marks=long), pytest.param("prove", marks=long), "smoke", "promote"]
)
def test_an_engine_that_goes_away_in_a_stage_is_no_failure_of_the_cell(play, stage):
    play.checkout.change_trainer()
    proxy = play.proxied(lambda _: "gone" if play.checkout.leg(stage) == "running" else None)
    play.checkout.environment = proxy.environment
    play.checkout.play()
    ended = play.checkout.night()
    play.checkout.environment = {}
    assert ended.status == 2, ended.text
    level = {"build": "two-gpu", "prove": "built", "smoke": "proven", "promote": "two-gpu"}[stage]
    play.says(level)


def test_a_full_disk_under_the_evidence_begins_no_night(refused):
    state = refused.checkout.evidence.parent
    with small_disk(state, kilobytes=2048):
        fill(state)
        ended = refused.checkout.night()
        assert ended.status == 2
        assert "RM621" in ended.text
        assert refused.tag == refused.before
        (state / "filler").unlink()
    refused.says(*GREEN)


def test_a_disk_that_fills_during_smoke_promotes_nothing(play):
    play.checkout.change_trainer()
    state = play.checkout.evidence.parent
    with small_disk(state, kilobytes=2048):
        night = play.paused_night()
        fill(state)
        play.checkout.paused.unlink()
        ended = night.end()
        assert ended.status == 2
        assert play.tag == play.before
        (state / "filler").unlink()
    play.says("proven", "smoke", *failed_without_verdict(play))


@long
def test_a_full_disk_under_the_logs_fails_the_build_and_keeps_the_level(play):
    play.checkout.change_trainer()
    logs = play.checkout.place / ".rocmatrix" / "nightly"
    with small_disk(logs, kilobytes=8, content=[]):
        fill(logs)
        ended = play.checkout.night()
        assert (ended.status, "RM205" in ended.text) == (2, True), ended.text
    play.says(*GREEN)


def test_a_clock_that_was_set_back_changes_nothing(play):
    play.checkout.play(probes={"blas": "fail"})
    assert play.checkout.night(hours=-72).status == 2
    play.says("proven", "smoke", "blas")
    play.checkout.play()
    assert play.checkout.night(hours=-100).status == 0
    play.says(*GREEN)


def test_a_locked_evidence_file_begins_no_night(refused):
    with locked(refused.checkout.evidence):
        ended = refused.checkout.night(settings=IMPATIENT)
    assert (ended.status, "RM621" in ended.text) == (2, True)
    refused.says(*GREEN)


def test_a_read_only_evidence_file_begins_no_night(refused):
    state = refused.checkout.evidence.parent
    with small_disk(state, kilobytes=2048):
        subprocess.run(["mount", "-o", "remount,ro", str(state)], check=True)
        ended = refused.checkout.night()
        assert (ended.status, "RM621" in ended.text) == (2, True), ended.text
        refused.says(*GREEN)


def test_a_damaged_evidence_file_shows_no_level_and_begins_no_night(refused):
    evidence = refused.checkout.evidence
    whole = evidence.read_bytes()
    evidence.write_bytes(b"x" * 100 + whole[100:])
    ended = refused.checkout.night()
    assert (ended.status, "RM621" in ended.text) == (2, True)
    assert refused.checkout.run("evidence").status == 2
    assert "simulated: " not in refused.checkout.run("cells").text
    evidence.write_bytes(whole)
    refused.says(*GREEN)


def test_a_base_that_no_registry_gives_is_no_failure_of_the_cell(refused):
    base, refused.checkout.base = refused.checkout.base, "registry.invalid/none:1"
    ended = refused.checkout.night()
    refused.checkout.base = base
    assert (ended.status, "RM204" in ended.text) == (2, True)
    refused.says(*GREEN)


def test_after_all_that_kept_it_from_beginning_a_night_is_green(play):
    play.says(*GREEN)


# Two at once.


def test_of_two_nights_at_once_the_second_is_refused(play):
    night = play.paused_night()
    second = play.checkout.night()
    assert (second.status, "RM671" in second.text) == (2, True)
    play.checkout.paused.unlink()
    assert night.end().status == 0
    play.says(*GREEN)


def test_of_two_checkouts_on_one_engine_the_first_goes_on_and_each_has_its_own_truth(play, new_checkout):
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


def test_of_two_builds_at_once_each_records_the_image_it_made(play, new_checkout):
    other = new_checkout()
    play.checkout.change_trainer()
    other.change_trainer()
    argv = ("build", "--cell", making.GFX1100, "--base", other.base, "--wheelhouse")
    both = [each.begin(*argv, str(each.place / "wheels")) for each in (play.checkout, other)]
    assert [each.end().status for each in both] == [0, 0], [each.text for each in both]
    images = [each.truth().records[-1]["image"] for each in (play.checkout, other)]
    assert images[0] != images[1]
    assert play.tag in images
