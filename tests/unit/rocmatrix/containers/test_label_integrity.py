"""A seal fits what it was made for alone, however an engine words what is empty."""

import copy
import hashlib
from types import SimpleNamespace

import docker.errors
import pytest

from rocmatrix.containers import label_integrity
from rocmatrix.runtime.errors import RocmatrixError

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


def test_seal_is_the_hash_of_layers_settings_and_labels_in_a_fixed_form():
    """Images that were sealed before stay sealed: the form is written out here, apart from the code."""
    text = (
        '{"layers":["sha256:a","sha256:b"],"settings":{"Cmd":["--help"],"Env":["A=1","B=2"],'
        '"Labels":{"org.rocmatrix.cell":"c","org.rocmatrix.inputs":"1"},"User":"10001:10001"}}'
    )
    assert label_integrity.of(IMAGE) == hashlib.sha256(text.encode()).hexdigest()
    bare = '{"layers":[],"settings":{"Labels":{}}}'
    assert label_integrity.of({"RootFS": {"Layers": []}, "Config": None}) == hashlib.sha256(bare.encode()).hexdigest()


IN_USE = docker.errors.APIError("a container uses it")


@pytest.fixture
def put(monkeypatch):
    """Seal an image of these attributes with a BuildKit that ends with a status; return its calls."""

    def run(attributes, status=0, made=None, left=None, removed=None, stderr="no space\n", refusal=IN_USE, **more):
        calls = []
        held = {"rocmatrix:t": SimpleNamespace(id="sha256:1", attrs=attributes), "sha256:1": left}

        def builder(argv, **more):
            calls.append((argv, more.pop("input")))
            assert more == {"capture_output": True, "text": True, "check": False}
            held["rocmatrix:t"] = SimpleNamespace(id="sha256:2", attrs=made or sealed(attributes))
            return SimpleNamespace(returncode=status, stderr=stderr)

        def get(name):
            if held[name] is None:
                raise docker.errors.ImageNotFound(name)
            return held[name]

        def remove(name):
            removed.append(name)
            raise refusal

        monkeypatch.setattr(label_integrity, "subprocess", SimpleNamespace(run=builder))
        client = SimpleNamespace(images=SimpleNamespace(get=get, remove=remove))
        return label_integrity.put(client, "rocmatrix:t", **more), calls

    return run


def test_image_is_sealed_by_one_label_more_and_dated_as_every_image_is(put):
    made, ((argv, dockerfile),) = put(IMAGE)
    assert (made, dockerfile) == ("sha256:2", "FROM rocmatrix:t\n")
    assert argv == [
        *("docker", "buildx", "build", "--builder=default"),
        *("--output", "type=docker,compression=zstd,oci-mediatypes=true", "--provenance=false", "--progress=plain"),
        *("--build-arg", "SOURCE_DATE_EPOCH=1767225600"),
        *("--label", f"org.rocmatrix.seal={label_integrity.of(IMAGE)}", "--tag", "rocmatrix:t", "-"),
    ]


def test_seal_is_made_by_the_builder_that_is_named(put):
    _, ((argv, _),) = put(IMAGE, builder="rootless")
    assert argv[3] == "--builder=rootless"


@pytest.mark.parametrize(("tags", "goes"), [([], ["sha256:1"]), (["mine:1"], [])])
def test_image_before_its_seal_is_removed_where_the_engine_keeps_it_without_a_tag(put, tags, goes):
    removed = []
    made, _ = put(IMAGE, left=SimpleNamespace(tags=tags), removed=removed)
    assert (made, removed) == ("sha256:2", goes)


@pytest.mark.parametrize("refusal", [IN_USE, docker.errors.DockerException("no answer"), ConnectionResetError()])
def test_image_before_its_seal_that_cannot_be_removed_is_left(put, refusal):
    removed = []
    made, _ = put(IMAGE, left=SimpleNamespace(tags=[]), removed=removed, refusal=refusal)
    assert (made, removed) == ("sha256:2", ["sha256:1"])


def test_sealed_image_stays_as_it_is(put):
    assert put(sealed()) == ("sha256:1", [])


def test_seal_that_buildkit_does_not_make_is_rm202_with_its_words(put):
    with pytest.raises(RocmatrixError) as caught:
        put(IMAGE, status=1, stderr="x" + "y" * 1991 + " no space\n\n")
    error = caught.value
    assert (error.code, error.what, error.where) == ("RM202", "the image could not be sealed", "rocmatrix:t")
    assert error.why == "y" * 1991 + " no space"


@pytest.mark.parametrize("seal", [label_integrity.of, lambda _: label_integrity.of(IMAGE)])
def test_tag_that_moved_meanwhile_is_rm202(put, seal):
    other = copy.deepcopy(IMAGE)
    other["RootFS"]["Layers"].append("sha256:x")
    other["Config"]["Labels"][label_integrity.LABEL] = seal(other)
    with pytest.raises(RocmatrixError, match=r"RM202[\s\S]*was moved to another image"):
        put(IMAGE, made=other)
