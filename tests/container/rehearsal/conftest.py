"""The rehearsal's checkouts. Nothing here runs on an AMD card: machines, wheels and trainer are stand-ins."""

import os
import shutil
from contextlib import suppress

import pytest

from rocmatrix.containers import engine
from rocmatrix.images import labels
from tests.container.rehearsal import checkout as making
from tests.container.rehearsal.scenario import CANDIDATE, GREEN, Play


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """Lay a checkout out once; tests get copies of it."""
    if os.geteuid() != 0:
        pytest.skip("mknod needs root")
    return making.lay_out(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="module")
def new_checkout(client, small_base, template, tmp_path_factory):
    """Return a function that makes a checkout with two RX 7900 XT, or another SIMULATED machine."""
    made = []

    def new(model=making.sysfs.RX_7900_XT, *, cards=2, enter=()):
        place = tmp_path_factory.mktemp("checkout")
        shutil.copytree(template, place, dirs_exist_ok=True)
        tree = making.machine(tmp_path_factory.mktemp("machine"), model, cards=cards)
        made.append(making.Checkout(place, tree, small_base, enter))
        return made[-1]

    yield new
    for each in made:
        each.close()
    clean(client)


@pytest.fixture(scope="module")
def checkout(new_checkout):
    """Return the one checkout that the scenarios of a file play in, one after the other."""
    return new_checkout()


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
    assert (truth.level, truth.failures) == (*GREEN, []), (truth.cell_status, ended.text)
    assert made.tag == truth.records[-1]["image"] == engine.image(client, CANDIDATE).id
    assert not made.jobs(all=True)


@pytest.fixture
def refused(green, client, tmp_path):
    """Let a test keep a night from beginning. Nothing is mended after it: that nothing has changed is what it shows."""
    return Play(green, client, tmp_path)


def clean(client):
    """Remove what a rehearsal made: its tags begin with a word of their own."""
    for image in client.api.images():
        for tag in image.get("RepoTags") or ():
            if tag.startswith(("rocmatrix:simulated-", "rocmatrix:night-simulated-")):
                with suppress(*engine.failures()):
                    client.images.remove(tag, force=True)
    with suppress(*engine.failures()):  # what has lost its tag in a scenario
        client.images.prune(filters={"dangling": True, "label": labels.SIMULATED})
    for volume in client.volumes.list(filters={"name": "rocmatrix-cache-simulated-"}):
        with suppress(*engine.failures()):
            volume.remove(force=True)
