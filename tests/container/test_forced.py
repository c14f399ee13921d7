"""A forced request leaves its rule in the image. On STAND-INS for base and wheels: nothing here runs on a card."""

import shutil
from pathlib import Path

import pytest

from rocmatrix.containers import engine
from rocmatrix.images import build, render
from rocmatrix.matrix.resolver.resolve import Request, resolve
from tests.fixtures import cells

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def forced(client, debian, stand_in, tmp_path):
    """Build what a forced request resolves to, in a checkout that has no rendered files for it."""
    choice = resolve(cells.MATRIX, Request(gpu="MI50", rocm="7.2"), force=True)
    cell, wheels = stand_in(choice.cell)
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    render.write_recipe(cell, build.made_recipe(cell, tmp_path))
    rules = [rule.id for rule in choice.forced]
    if engine.image(client, build.tag(cell)):  # left by a run that was broken off: nothing would be built
        client.images.remove(build.tag(cell), force=True)
    yield build.build(cell, root=tmp_path, base=debian, wheelhouse=wheels, forced=rules)
    client.images.remove(build.tag(cell), force=True)


def test_image_names_the_rule_that_was_overridden(forced):
    assert forced.rebuilt
    assert forced.image.labels[build.FORCED_LABEL] == "gfx906-rocblas-from-6.4"
    assert forced.image.labels["org.rocmatrix.architecture"] == "gfx906"
