"""Images that are not what their tag states, on a real engine: neither smoked as the cell's nor promoted.

Machines, wheels and trainer are STAND-INS; scenarios are played as those of `test_broken_nights`.
"""

import pytest

from tests.container.rehearsal import checkout
from tests.container.rehearsal.scenario import CANDIDATE, GREEN, TAG, forged
from tests.left_out import long

pytestmark = pytest.mark.container


@long
@pytest.mark.parametrize("sealed", [False, True])
def test_tampered_image_under_both_tags_is_neither_smoked_nor_kept(play, sealed):
    evil = forged(play.client, sealed=sealed)
    for tag in (TAG, CANDIDATE):
        evil.tag(*tag.split(":"))
    assert play.checkout.night().status == 0
    truth = play.says(*GREEN, moved=True)
    assert all(record["image"] != evil.id for record in truth.records)


@long
def test_tampered_image_that_is_proven_by_hand_is_refused_and_counts(play):
    evil = forged(play.client, sealed=True)
    wheels = str(play.checkout.place / "wheels")
    ended = play.checkout.run("prove", "--cell", checkout.GFX1100, "--image", evil.id, "--wheelhouse", wheels)
    assert ended.status == 2
    assert "RM661" in ended.text
    play.says("built", "prove")


@long
def test_wrong_image_that_takes_the_candidates_tag_before_smoke_is_not_promoted(play):
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


@long
def test_promoted_tag_that_another_user_moved_is_moved_back_and_reported(play):
    play.client.images.get(play.checkout.base).tag(*TAG.split(":"))
    ended = play.checkout.night()
    assert ended.status == 0
    assert "which was an image of other inputs" in ended.text
    play.says(*GREEN)


@long
def test_older_image_that_is_promoted_again_has_the_level_of_its_own(play):
    before = play.says(*GREEN)
    older = play.checkout.change_trainer()
    play.checkout.play(probes={"blas": "fail"})
    assert play.checkout.night().status == 2
    play.says("proven", "smoke", "blas")
    play.checkout.change_trainer(older)
    play.checkout.play()
    assert play.checkout.night().status == 0
    truth = play.says(*GREEN, moved=True)
    assert truth.cell_status["inputs"] == before.cell_status["inputs"]
