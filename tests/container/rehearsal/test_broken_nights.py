"""A night broken at each link on a real engine: level, tag and page state what is true, and the next night is green.

Machines, wheels and trainer are STAND-INS. Every scenario begins with a green cell and ends with one. A stop of CI
plays one scenario for each stage and kind of fault, the nightly workflow all of them.
"""

import shutil
import subprocess
import threading
import time
from contextlib import suppress

import docker
import pytest

from tests.container.rehearsal import checkout
from tests.container.rehearsal.scenario import (
    GREEN,
    IMPATIENT,
    PROBES,
    failed_without_verdict,
    fill,
    locked,
    merge_journal,
    small_disk,
)
from tests.left_out import long

pytestmark = pytest.mark.container


@long
def test_killed_while_it_plans_leaves_no_trace(play):
    with locked(play.checkout.evidence):
        night = play.checkout.begin_night()
        night.until((play.checkout.place / ".rocmatrix/nightly/night.lock").exists)
        time.sleep(1)
        night.kill()
    play.says(*GREEN)


@long
def test_killed_while_it_builds_keeps_level_and_tag_of_the_image_before(play):
    play.checkout.change_trainer()
    night = play.checkout.begin_night()
    night.until(lambda: play.checkout.leg("build") == "running")
    night.until(lambda: "[internal]" in night.text)
    night.kill()
    assert play.tag == play.before
    assert play.checkout.truth().level in ("two-gpu", "built")  # the builder may have ended in that moment


@long
def test_killed_while_it_proves_leaves_an_image_that_is_built_only(play):
    play.checkout.change_trainer()
    night = play.checkout.begin_night()
    night.until(lambda: play.checkout.leg("prove") == "running")
    night.until(lambda: play.jobs(all=True))  # the container of the export
    night.kill()
    play.says("built")


@long
def test_killed_in_smoke_counts_as_failed_and_its_container_is_removed(play):
    night = play.paused_night()
    (job,) = play.jobs()
    night.kill()
    with suppress(docker.errors.NotFound):  # a program of another test on this engine may have swept it already
        job.reload()
        assert job.status == "running"  # it holds the cards until the next program sweeps
    assert play.says("proven", "smoke", *failed_without_verdict(play)).records[-1]["passed"] is False


@long
def test_killed_while_it_records_a_smoke_that_passed_is_a_run_that_was_lost(play):
    night = play.paused_night()
    with locked(play.checkout.evidence):
        play.checkout.paused.unlink()
        night.until(lambda: not play.jobs(all=True))
        time.sleep(0.5)
        night.kill()
    play.says("proven", "smoke", *failed_without_verdict(play))


@long
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


@long
def test_dashboard_that_is_killed_leaves_whole_pages_only(play):
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
        pytest.param(
            {"probes": {"two_gpu_step": "fail"}, "silent": [1]}, ["two_gpu_step"], id="second-card-silent", marks=long
        ),
        pytest.param({"status": 3}, ["the suite"], id="suite-ends-with-3", marks=long),
    ],
)
def test_smoke_that_fails_takes_the_level_and_moves_no_tag(play, scene, failures):
    play.checkout.change_trainer()
    play.checkout.play(**scene)
    ended = play.checkout.night()
    assert ended.status == 2
    assert "RM630" in ended.text
    assert all(f"{name} regressed" in ended.text for name in failures if name != "the suite")
    play.says("proven", "smoke", *failures)


@long
def test_suite_that_dies_in_the_middle_of_a_line_has_failed_from_there_on(play):
    play.checkout.play(cut="conv")
    ended = play.checkout.night()
    assert ended.status == 2
    every = failed_without_verdict(play)
    play.says("proven", "smoke", *every[every.index("conv") :])


@long
def test_container_that_is_killed_in_smoke_has_failed(play):
    night = play.paused_night("rng")
    (job,) = play.jobs()
    job.kill()
    ended = night.end()
    assert ended.status == 2
    every = failed_without_verdict(play)
    truth = play.says("proven", "smoke", *every[every.index("rng") :])
    assert truth.records[-1].get("trouble") is None


@long
def test_container_that_is_killed_in_prove_proves_nothing(play):
    shutil.rmtree(play.checkout.place / ".rocmatrix" / "byte-code")
    night = play.checkout.begin_night()
    night.until(play.jobs)  # the one that compiles again
    for job in play.jobs():
        job.kill()
    ended = night.end()
    assert ended.status == 2
    play.says("built", "prove")


@long
def test_export_removed_during_the_proof_is_trouble_of_the_host(play):
    night = play.checkout.begin_night()
    night.until(lambda: play.jobs(all=True))
    for job in play.jobs(all=True):
        job.remove(force=True)
    ended = night.end()
    if "prove passed" in ended.text:
        pytest.skip("the export was over before it could be broken off")
    assert ended.status == 2
    truth = play.says(*GREEN)
    assert truth.cell_status["troubles"] == 1


@long
def test_card_that_is_missing_is_named_as_a_verdict_that_vanished(play):
    whole = play.checkout.tree
    play.checkout.tree = checkout.machine(play.folder / "one", checkout.sysfs.RX_7900_XT, cards=1)
    ended = play.checkout.night()
    play.checkout.tree = whole
    assert ended.status == 2
    assert "two_gpu_step vanished" in ended.text
    play.says(*GREEN)  # of the newest run that held a verdict on two cards


@long
def test_night_without_a_card_smokes_nothing_and_moves_nothing(play):
    play.checkout.change_trainer()
    whole = play.checkout.tree
    play.checkout.tree = checkout.machine(play.folder / "none", checkout.sysfs.RX_7900_XT, cards=0)
    ended = play.checkout.night()
    play.checkout.tree = whole
    assert "smoke left out (this machine has no gfx1100 card)" in ended.text
    play.says("proven")


# What goes wrong with the build, the engine, the disk or the evidence file.


@long
def test_build_that_fails_keeps_the_tag(play):
    pruner = play.checkout.place / "rocmatrix" / "verify" / "pruning" / "prune.py"
    text = pruner.read_text()
    pruner.write_text("raise SystemExit('broken for the rehearsal')\n")
    ended = play.checkout.night()
    pruner.write_text(text)
    assert (ended.status, "RM202" in ended.text) == (2, True), ended.text
    play.says("rendered", "build")


def test_engine_that_is_not_there_begins_nothing(refused):
    refused.checkout.environment = {"DOCKER_HOST": f"unix://{refused.folder}/none.sock"}
    ended = refused.checkout.night()
    refused.checkout.environment = {}
    assert (ended.status, "RM201" in ended.text) == (2, True)
    refused.says(*GREEN)


@long
@pytest.mark.parametrize("stage", ["smoke", "build", "prove", "promote"])
def test_engine_that_goes_away_in_a_stage_is_no_failure_of_the_cell(play, stage):
    play.checkout.change_trainer()
    proxy = play.proxied(lambda _: "gone" if play.checkout.leg(stage) == "running" else None)
    play.checkout.environment = proxy.environment
    play.checkout.play()
    ended = play.checkout.night()
    play.checkout.environment = {}
    assert ended.status == 2, ended.text
    level = {"build": "two-gpu", "prove": "built", "smoke": "proven", "promote": "two-gpu"}[stage]
    play.says(level)


def test_full_disk_under_the_evidence_begins_no_night(refused):
    state = refused.checkout.evidence.parent
    with small_disk(state, kilobytes=1024):
        fill(state)
        ended = refused.checkout.night()
        assert ended.status == 2
        assert "RM621" in ended.text
        assert refused.tag == refused.before
        (state / "filler").unlink()
    refused.says(*GREEN)


def test_disk_that_fills_during_smoke_promotes_nothing(play):
    play.checkout.change_trainer()
    state = play.checkout.evidence.parent
    with small_disk(state, kilobytes=1024):
        night = play.paused_night()
        fill(state)
        play.checkout.paused.unlink()
        ended = night.end()
        assert ended.status == 2
        assert play.tag == play.before
        (state / "filler").unlink()
    play.says("proven", "smoke", *failed_without_verdict(play))


@long
def test_full_disk_under_the_logs_fails_the_build_and_keeps_the_level(play):
    play.checkout.change_trainer()
    logs = play.checkout.place / ".rocmatrix" / "nightly"
    with small_disk(logs, kilobytes=8, content=[]):
        fill(logs)
        ended = play.checkout.night()
        assert (ended.status, "RM205" in ended.text) == (2, True), ended.text
    play.says(*GREEN)


@long
def test_clock_that_was_set_back_changes_nothing(play):
    play.checkout.play(probes={"blas": "fail"})
    assert play.checkout.night(hours=-72).status == 2
    play.says("proven", "smoke", "blas")
    play.checkout.play()
    assert play.checkout.night(hours=-100).status == 0
    play.says(*GREEN)


def test_locked_evidence_file_begins_no_night(refused):
    with locked(refused.checkout.evidence):
        ended = refused.checkout.night(settings=IMPATIENT)
    assert (ended.status, "RM621" in ended.text) == (2, True)
    refused.says(*GREEN)


def test_read_only_evidence_file_begins_no_night(refused):
    state = refused.checkout.evidence.parent
    with small_disk(state, kilobytes=1024):
        subprocess.run(["mount", "-o", "remount,ro", str(state)], check=True)
        ended = refused.checkout.night()
        assert (ended.status, "RM621" in ended.text) == (2, True), ended.text
        refused.says(*GREEN)


def test_damaged_evidence_file_shows_no_level_and_begins_no_night(refused):
    evidence = refused.checkout.evidence
    merge_journal(evidence)  # the file alone is put back
    whole = evidence.read_bytes()
    evidence.write_bytes(b"x" * 100 + whole[100:])
    ended = refused.checkout.night()
    assert (ended.status, "RM621" in ended.text) == (2, True)
    assert refused.checkout.run("evidence").status == 2
    assert "simulated: " not in refused.checkout.run("cells").text
    evidence.write_bytes(whole)
    refused.says(*GREEN)


def test_base_that_no_registry_gives_is_no_failure_of_the_cell(refused):
    base, refused.checkout.base = refused.checkout.base, "registry.invalid/none:1"
    ended = refused.checkout.night()
    refused.checkout.base = base
    assert (ended.status, "RM204" in ended.text) == (2, True)
    refused.says(*GREEN)


@long
def test_night_after_every_failed_start_is_green(play):
    play.says(*GREEN)
