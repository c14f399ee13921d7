"""A base that was named once is taken again, and looked at anew. Wheels are STAND-INS."""

import shutil

import pytest

from rocmatrix.containers import engine
from rocmatrix.images import build, render
from tests.fixtures import cells
from tests.fixtures.stand_ins import stand_in_cell
from tests.left_out import long

pytestmark = pytest.mark.container

MIRROR = "rocmatrix-test-mirror/debian:1"  # a tag of the test's own, so that it can be moved


@pytest.fixture
def mirrored(client, debian, lay_out, tmp_path):
    """Build a STAND-IN cell on a base of another name; return how to build it again with none named."""
    cell = stand_in_cell(cells.GFX1100, tmp_path / "wheels", name="stand-in-remembered")
    root = lay_out(cell, cells.GFX1100)
    (root / "images" / cell.name / "requirements.lock").write_text(render.requirements_lock(cell))
    client.images.get(debian).tag(MIRROR)
    if engine.image(client, build.tag(cell)):  # left by a run that was broken off: nothing would be built
        client.images.remove(build.tag(cell), force=True)

    def again(**named):
        return build.build(cell, root=root, wheelhouse=tmp_path / "wheels", **named)

    assert again(base=MIRROR).rebuilt
    yield again
    for tag in (build.tag(cell), MIRROR):
        if engine.image(client, tag):
            client.images.remove(tag, force=True)
    shutil.rmtree(root)


def move(client, debian):
    """Let the tag mean another image, as a mirror does over night."""
    container = client.containers.create(debian, ["true"])
    try:
        repository, _, tag = MIRROR.partition(":")
        container.commit(repository=repository, tag=tag, conf={"Labels": {"moved": "yes"}})
    finally:
        container.remove(force=True)


@long
def test_base_that_is_not_named_stays_the_same_until_its_tag_moves(client, debian, mirrored, capsys):
    same = mirrored()
    assert not same.rebuilt
    assert f"base: {MIRROR}, which this image was made from" in capsys.readouterr().err
    move(client, debian)
    moved = mirrored()
    assert moved.rebuilt
    assert moved.image.labels["org.rocmatrix.base.id"] == engine.image(client, MIRROR).id
    assert client.images.get(moved.tag).labels["moved"] == "yes"


def test_base_that_the_engine_has_lost_does_not_rebuild(client, mirrored):
    client.images.remove(MIRROR, force=True)
    assert not mirrored().rebuilt
