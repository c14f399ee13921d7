"""An image's labels and user against its cell, as a whole outcome."""

import hashlib
from pathlib import Path

import pytest

from rocmatrix.images import render
from rocmatrix.nightly import bake
from rocmatrix.verify import label_check
from rocmatrix.verify.finding import Check, Finding
from tests.fixtures import cells

UNLOCKED = next(cell for cell in cells.MATRIX.cells if cell.unlocked_because)
SUMMARY = "5 labels and the user"


def labels(cell):
    lock = hashlib.sha256(render.requirements_lock(cell).encode()).hexdigest()
    return {
        "org.rocmatrix.cell": cell.name,
        "org.rocmatrix.torch": cell.release.torch,
        "org.rocmatrix.rocm": cell.release.rocm or "none",
        "org.rocmatrix.architecture": cell.architecture or "none",
        "org.rocmatrix.lock": "unlocked" if cell.unlocked_because else lock,
    }


@pytest.mark.parametrize("cell", [cells.CPU, cells.GFX1100, UNLOCKED], ids=lambda cell: cell.name)
def test_cells_own_labels_and_user_pass(cell):
    assert label_check.check(labels(cell), user="10001:10001", cell=cell) == Check(name="labels", summary=SUMMARY)


@pytest.mark.parametrize("name", ["cell", "torch", "rocm", "architecture", "lock"])
@pytest.mark.parametrize("stated", ["other", None])
def test_label_that_differs_or_is_missing_is_named_with_both_values(name, stated):
    right = labels(cells.GFX1100)
    wrong = {key: value for key, value in (right | {f"org.rocmatrix.{name}": stated}).items() if value}
    place = f"{name} is {stated!r}, not {right[f'org.rocmatrix.{name}']!r}"
    finding = Finding(code="RM219", what="labels that say otherwise than the cell", places=(place,))
    expected = Check(name="labels", summary=SUMMARY, findings=(finding,))
    assert label_check.check(wrong, user="10001:10001", cell=cells.GFX1100) == expected


def test_labels_that_a_night_writes_pass(tmp_path):
    root, cell = Path(__file__).resolve().parents[4], cells.GFX1100
    base = {"base": "any:1", "base_id": "sha256:" + "e" * 64}
    made = bake.bake_file([cell], root=root, wheelhouses={cell.name: tmp_path}, night="2026-11-22.1", **base)
    written = labels(cell) | made["target"][bake.target(cell)]["labels"]
    assert {"org.rocmatrix.night", "org.rocmatrix.base", "org.rocmatrix.inputs"} <= written.keys()
    assert label_check.check(written, user="10001:10001", cell=cell).findings == ()


@pytest.mark.parametrize("user", ["", "root", "10001", "0:0"])
def test_another_user_fails(user):
    (finding,) = label_check.check(labels(cells.CPU), user=user, cell=cells.CPU).findings
    assert (finding.code, finding.places) == ("RM219", (f"the default user is {user!r}, not '10001:10001'",))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("devcontainer.metadata", '[{"privileged": true}]', "neither the recipe nor its base"),
        ("io.podman.annotations.label", "disable", "neither the recipe nor its base"),
        ("org.rocmatrix.companions", "evil", "neither the recipe nor its base"),
        ("org.rocmatrix.promoted", "yes", "neither the recipe nor its base"),
        ("org.rocmatrix.base", "", "is empty"),
        ("org.rocmatrix.stand-in", "", "is empty"),
        ("org.rocmatrix.forced", "", "is empty"),
        ("org.rocmatrix.base.id", "sha256:" + "e" * 64, "without org.rocmatrix.base"),
    ],
)
def test_label_of_no_recipe_build_or_base_is_named(name, value, words):
    found = labels(cells.GFX1100) | {"org.rocmatrix.inputs": "a" * 64, name: value}
    (finding,) = label_check.check(found, user="10001:10001", cell=cells.GFX1100, inherited={}).findings
    assert [place for place in finding.places if place.startswith(name) and words in place]


def test_labels_of_builds_and_of_the_base_pass():
    of_build = {
        "org.rocmatrix.inputs": "a" * 64, "org.rocmatrix.seal": "b" * 64, "org.rocmatrix.base": "another",
        "org.rocmatrix.base.id": "sha256:1", "org.rocmatrix.stand-in": "wheels", "org.opencontainers.image.title": "x",
    }  # fmt: skip
    found = labels(cells.GFX1100) | of_build | {"maintainer": "of the base"}
    inherited = {"maintainer": "of the base"}
    check = label_check.check(found, user="10001:10001", cell=cells.GFX1100, inherited=inherited)
    assert check.findings == ()
    other = label_check.check(found, user="10001:10001", cell=cells.GFX1100, inherited={"maintainer": "of another"})
    assert "maintainer is 'of the base'" in other.findings[0].places[0]


def test_missing_labels_and_root_fail():
    (finding,) = label_check.check({}, user="", cell=cells.CPU).findings
    assert len(finding.places) == 6


@pytest.mark.parametrize(("found", "places"), [("peft,trl", 0), ("peft", 1), ("peft,trl,evil", 1), (None, 1)])
def test_companions_of_an_image_are_those_of_its_cell(found, places):
    cell = cells.GFX1100.model_copy(update={"companions": ("peft", "trl")})
    written = labels(cell) | ({"org.rocmatrix.companions": found} if found else {})
    findings = label_check.check(written, user="10001:10001", cell=cell).findings
    assert [len(finding.places) for finding in findings] == [places] * bool(places)
    assert all(f"companions is {found!r}, not 'peft,trl'" in finding.places for finding in findings)


OCI = "org.opencontainers.image.base."
OTHER = {"org.rocmatrix.base": "m/u:1@sha256:" + "e" * 64}


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({f"{OCI}name": "ubuntu:24.04"}, None),
        ({f"{OCI}name": ""}, None),
        ({f"{OCI}name": "debian:12"}, f"{OCI}name"),
        ({f"{OCI}digest": cells.GFX1100.base.digest}, None),
        ({f"{OCI}digest": "sha256:" + "e" * 64}, f"{OCI}digest"),
        (OTHER | {f"{OCI}name": "m/u:1", f"{OCI}digest": "sha256:" + "e" * 64}, None),
        (OTHER | {f"{OCI}name": "ubuntu:24.04"}, f"{OCI}name"),
        (OTHER | {f"{OCI}digest": cells.GFX1100.base.digest}, f"{OCI}digest"),
        ({"org.rocmatrix.base": "m/u:1", f"{OCI}digest": cells.GFX1100.base.digest}, f"{OCI}digest"),
        ({"org.rocmatrix.base": "m/u:1", f"{OCI}digest": ""}, None),
    ],
)
def test_label_on_another_base_than_the_image_was_made_from_fails(more, wrong):
    written = labels(cells.GFX1100) | more
    findings = label_check.check(written, user="10001:10001", cell=cells.GFX1100).findings
    places = [place.partition(" is ")[0] for finding in findings for place in finding.places]
    assert places == ([wrong] if wrong else [])


def test_label_on_another_base_is_held_against_the_base_that_is_known():
    for cell, base in ((cells.GFX1100, cells.GFX1100.base.digest), (cells.CPU, "no known digest")):
        written = labels(cell) | {f"{OCI}digest": "sha256:" + "e" * 64}
        (finding,) = label_check.check(written, user="10001:10001", cell=cell).findings
        assert finding.places[0].endswith(base)
