"""The labels that a build writes, and what an image with such labels is set aside for."""

import pytest

from rocmatrix.host import simulated
from rocmatrix.images import labels
from rocmatrix.images.base import OtherBase

DIGEST = "sha256:" + "d" * 64
NONE = {"stand-in": False, "simulated": False, "other-base": False, "unlocked": False, "forced": False}


@pytest.fixture(autouse=True)
def real(monkeypatch):
    monkeypatch.delenv(simulated.VARIABLE, raising=False)
    monkeypatch.delenv(labels.STAND_IN_VARIABLE, raising=False)


def test_labels_of_a_plain_build_are_its_inputs_alone():
    assert labels.written(inputs="abc") == {"org.rocmatrix.inputs": "abc"}
    assert labels.written(inputs="abc", base="", base_id="") == {"org.rocmatrix.inputs": "abc"}


def test_labels_name_the_base_its_id_forced_rules_stand_ins_and_a_simulation(monkeypatch, tmp_path):
    monkeypatch.setenv("ROCMATRIX_STAND_IN", "wheels\nof no content")
    monkeypatch.setenv("ROCMATRIX_SIMULATED", str(tmp_path))
    assert labels.written(inputs="abc", base="m/u:1", base_id="sha256:1", forced=["a", "b"]) == {
        "org.rocmatrix.inputs": "abc",
        "org.rocmatrix.forced": "a,b",
        "org.rocmatrix.base": "m/u:1",
        "org.rocmatrix.base.id": "sha256:1",
        "org.rocmatrix.stand-in": "wheels of no content",
        "org.rocmatrix.simulated": "yes",
    }


@pytest.mark.parametrize(
    ("written", "mark"),
    [
        ({}, None),
        ({"org.rocmatrix.stand-in": "wheels"}, "stand-in"),
        ({"org.rocmatrix.stand-in": ""}, None),
        ({"org.rocmatrix.simulated": "yes"}, "simulated"),
        ({"org.rocmatrix.base": "m/u:1"}, "other-base"),
        ({"org.rocmatrix.base": f"m/u@{DIGEST}"}, None),
        ({"org.rocmatrix.base": ""}, None),
        ({"org.rocmatrix.base.id": "sha256:1"}, None),
        ({"org.rocmatrix.lock": "unlocked"}, "unlocked"),
        ({"org.rocmatrix.lock": "a" * 64}, None),
        ({"org.rocmatrix.forced": "a-rule"}, "forced"),
        ({"org.rocmatrix.forced": ""}, None),
    ],
)
def test_label_sets_an_image_aside_for_its_own_reason_alone(written, mark):
    assert labels.marks(written, own_digest=DIGEST) == NONE | ({mark: True} if mark else {})


@pytest.mark.parametrize(
    ("base", "digest", "own"),
    [
        (f"m/u@{DIGEST}", DIGEST, True),
        (f"m/u:1@{DIGEST}", DIGEST, True),
        (f"m/u{DIGEST}", DIGEST, False),
        (f"m/u@{DIGEST}x", DIGEST, False),
        ("m/u@None", None, False),
    ],
)
def test_base_is_the_cells_own_by_its_digest_alone(base, digest, own):
    assert labels.is_own(base, digest) is own


def test_labels_of_a_build_name_another_base_and_forced_rules():
    written = labels.of_build("abc", other=OtherBase(name="mirror/u:1", id="sha256:1"), forced=["a", "b"])
    assert written == {
        "org.rocmatrix.inputs": "abc",
        "org.rocmatrix.forced": "a,b",
        "org.rocmatrix.base": "mirror/u:1",
        "org.rocmatrix.base.id": "sha256:1",
    }
    assert labels.of_build("abc") == {"org.rocmatrix.inputs": "abc"}
