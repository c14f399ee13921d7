"""The whole chain on SIMULATED machines, green once: build, prove, smoke, evidence, level, promotion, page."""

import pytest

from rocmatrix.containers import engine
from tests.container.rehearsal import checkout as making
from tests.left_out import long

pytestmark = pytest.mark.container


@pytest.fixture(scope="module")
def eight(new_checkout):
    """Return a checkout whose SIMULATED machine has eight MI300X."""
    made = new_checkout(making.MI300X, cards=8)
    made.cell = making.GFX942
    return made


def test_chain_is_green_on_two_cards_and_marked_simulated_everywhere(checkout, client):
    checkout.play()
    ended = checkout.night()
    assert ended.status == 0, ended.text
    assert f"SIMULATED machine: {checkout.tree}" in ended.text
    truth = checkout.truth()
    assert (truth.level, truth.failures) == ("two-gpu", [])
    assert truth.cell_status["took_part"] == ["card 0 (renderD128)", "card 1 (renderD129)"]
    assert [record["kind"] for record in truth.records] == ["build", "prove", "smoke"]
    promoted = client.images.get(f"rocmatrix:simulated-{checkout.cell}")
    assert {record["image"] for record in truth.records} == {promoted.id}
    assert promoted.labels["org.rocmatrix.simulated"] == "yes"
    assert "Done on a simulated machine: no evidence of the cell." in truth.page
    index = (checkout.place / "page" / "index.html").read_text()
    assert "simulated: two-gpu" in index
    listed = checkout.run("cells")
    assert "rendered; simulated: two-gpu" in listed.text
    assert "measured" not in [line.split()[5] for line in listed.text.splitlines() if line.startswith(checkout.cell)]


def test_training_raises_the_simulated_level_and_a_failed_one_takes_it_away(checkout):
    output = checkout.place / "trained"
    output.mkdir()
    argv = (
        "train", "--in", "container", "--cell", checkout.cell, "--base", checkout.base, "--epochs", "1",
        "--wheelhouse", str(checkout.place / "wheels"), "--output", str(output),
    )  # fmt: skip
    for status, level, failures in ((0, "trained", []), (3, "two-gpu", ["train"]), (0, "trained", [])):
        scene = making.SCENES[checkout.cell] | {"status": status}
        (output / "scenario.json").write_text(making.json.dumps(scene))
        ended = checkout.run(*argv)
        assert (ended.status == 0) == (status == 0), ended.text
        truth = checkout.truth()
        assert (truth.level, truth.failures) == (level, failures)


@long
def test_silent_card_of_eight_is_named(eight, client):
    eight.play()
    assert eight.night().status == 0
    truth = eight.truth()
    assert (truth.level, len(truth.cell_status["took_part"])) == ("two-gpu", 8)
    assert truth.cell_status["card"] == "SIMULATED Instinct MI300X"
    eight.play(silent=list(range(1, 8)))  # it passed, and one card alone took part
    assert eight.night().status == 0
    assert eight.truth().level == "smoked"
    eight.play(silent=[5], probes={"two_gpu_step": "fail"})
    ended = eight.night()
    assert ended.status == 2
    assert "two_gpu_step regressed" in ended.text
    truth = eight.truth()
    assert (truth.level, truth.failures) == ("proven", ["smoke", "two_gpu_step"])


def test_tag_of_a_real_or_simulated_image_never_takes_the_other(checkout, client):
    assert engine.image(client, f"rocmatrix:simulated-{checkout.cell}")
    assert engine.image(client, f"rocmatrix:night-simulated-{checkout.cell}")
    held = engine.image(client, f"rocmatrix:{checkout.cell}")
    assert held is None or "org.rocmatrix.simulated" not in held.labels
