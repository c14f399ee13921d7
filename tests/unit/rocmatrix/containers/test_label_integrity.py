"""A seal fits what it was made for alone, however an engine words what is empty."""

import copy

import pytest

from rocmatrix.containers import label_integrity

IMAGE = {
    "RootFS": {"Layers": ["sha256:a", "sha256:b"]},
    "Config": {
        "User": "10001:10001",
        "Env": ["A=1", "B=2"],
        "Cmd": ["--help"],
        "Volumes": None,
        "Labels": {"org.rocmatrix.cell": "c", "org.rocmatrix.inputs": "1"},
    },
}


def sealed(image=IMAGE):
    made = copy.deepcopy(image)
    made["Config"]["Labels"][label_integrity.LABEL] = label_integrity.of(made)
    return made


def test_seal_fits_the_image_that_it_was_made_for():
    assert label_integrity.holds(sealed())
    assert label_integrity.of(sealed()) == label_integrity.of(IMAGE)


def test_image_without_labels_is_not_sealed():
    assert not label_integrity.holds(IMAGE)
    assert not label_integrity.holds({"RootFS": {"Layers": []}, "Config": None})
    assert not label_integrity.holds({"RootFS": {"Layers": []}, "Config": {"Labels": None}})


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image["RootFS"]["Layers"].append("sha256:c"),
        lambda image: image["RootFS"]["Layers"].reverse(),
        lambda image: image["Config"]["Labels"].update({"org.rocmatrix.inputs": "2"}),
        lambda image: image["Config"]["Labels"].update({"more": ""}),
        lambda image: image["Config"]["Labels"].pop("org.rocmatrix.cell"),
        lambda image: image["Config"].update(User=""),
        lambda image: image["Config"].update(Env=["A=1", "B=2", "LD_PRELOAD=/x"]),
        lambda image: image["Config"].update(Entrypoint=["sh"]),
        lambda image: image["Config"].update(Cmd=None),
        lambda image: image["Config"].update(WorkingDir="/"),
        lambda image: image["Config"].update(Volumes={"/x": {}}),
        lambda image: image["Config"].update(ExposedPorts={"22/tcp": {}}),
        lambda image: image["Config"].update(Healthcheck={"Test": ["CMD", "x"]}),
        lambda image: image["Config"].update(OnBuild=["RUN x"]),
        lambda image: image["Config"].update(Shell=["x"]),
        lambda image: image["Config"].update(StopSignal="SIGKILL"),
    ],
)
def test_change_of_any_input_breaks_the_seal(change):
    image = sealed()
    change(image)
    assert not label_integrity.holds(image)


def test_empty_setting_may_be_left_out():
    image = sealed()
    image["Config"] |= {"Volumes": {}, "OnBuild": [], "Entrypoint": None, "Hostname": "", "Image": "x"}
    assert label_integrity.holds(image)
    del image["Config"]["Volumes"]
    assert label_integrity.holds(image)
