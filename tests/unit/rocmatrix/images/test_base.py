"""Which base an image is built on: the one asked for, else the one it was made from, else the cell's own."""

import io
import tarfile
from types import SimpleNamespace

import pytest

from rocmatrix.containers import engine, orphan_cleanup
from rocmatrix.images import base, labels
from rocmatrix.images.labels import OtherBase
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import GFX1100

CLIENT = object()
UNBOUND = GFX1100.model_copy(update={"wheels": ()})


@pytest.fixture
def held(monkeypatch):
    """The images that the engine holds, by name; what is fetched is listed."""
    images, fetched = {}, []

    def look(client, name):
        assert client is CLIENT
        return images.get(name)

    def obtain(client, name):
        assert client is CLIENT
        fetched.append(name)
        return engine.Image(id=f"sha256:{name}", labels={}, size=1)

    monkeypatch.setattr(engine, "image", look)
    monkeypatch.setattr(engine, "obtain", obtain)
    return images, fetched


def image(id_="sha256:held", **labels):
    return engine.Image(id=id_, labels={f"org.rocmatrix.{name}": value for name, value in labels.items()}, size=1)


REMEMBERED = image(**{"base": "m/u:1", "base.id": "sha256:old"})


def test_base_that_an_image_was_made_from_is_reported_and_one_that_is_requested_is_not(held, capsys):
    # its labels cannot be read: none that it may have is taken for the image's own
    lost = OtherBase(name="m/u:1", id="sha256:old", describes=frozenset(labels.DESCRIBING))
    assert base.chosen(CLIENT, None, REMEMBERED) == lost
    stderr = capsys.readouterr().err
    assert stderr == "base: m/u:1, which this image was made from; --base names another\n"
    base.chosen(CLIENT, "m/u:2", REMEMBERED)
    assert capsys.readouterr().err == ""


def test_base_that_is_there_states_the_labels_that_it_has(held):
    images, _ = held
    images["m/u:1"] = image("sha256:now", name="given", empty="")
    assert base.chosen(CLIENT, "m/u:1", None).describes == {"org.rocmatrix.name"}


@pytest.mark.parametrize("there", [None, image()])
def test_base_is_the_cells_own_where_none_is_requested_or_remembered(held, there, capsys):
    assert base.chosen(CLIENT, None, there) is None
    assert capsys.readouterr().err == ""


def test_base_is_known_by_the_id_that_the_engine_has_now_and_fetched_where_it_has_none(held):
    images, fetched = held
    images["m/u:1"] = image("sha256:now")
    assert base.chosen(CLIENT, None, REMEMBERED) == OtherBase(name="m/u:1", id="sha256:now")
    assert base.chosen(CLIENT, "m/u:1", None) == OtherBase(name="m/u:1", id="sha256:now")
    assert fetched == []
    assert base.chosen(CLIENT, "m/u:2", REMEMBERED) == OtherBase(name="m/u:2", id="sha256:m/u:2")
    assert base.chosen(CLIENT, None, image(base="m/u:3")) == OtherBase(name="m/u:3", id="sha256:m/u:3")
    assert fetched == ["m/u:2", "m/u:3"]


def release_archive(content, *, name="os-release", kind=tarfile.REGTYPE):
    """Return an archive of one member, as the engine sends a path of a container."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size, info.type = len(content), kind
        archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


class Looked:
    """Stands in for a container that was made and not started: links and files as an image has them."""

    def __init__(self, link, release):
        self.link, self.release, self.removed = link, release, False

    def get_archive(self, path):
        import docker.errors

        if path == "/usr/bin/python3" and self.link is not None:
            return [], {"linkTarget": self.link}
        if path == "/usr/lib/os-release" and self.release is not None:
            packed = release_archive(self.release)
            return [packed[:530], packed[530:]], {}  # in pieces, of which one ends within the text
        raise docker.errors.NotFound(path)

    def remove(self, force):
        self.removed = force


@pytest.mark.parametrize(
    ("link", "release", "python"),
    [
        ("python3.10", None, "3.10"),
        ("/usr/bin/python3.12", b"VERSION_CODENAME=jammy\n", "3.12"),
        (None, b'ID=ubuntu\nVERSION_CODENAME="jammy"\n', "3.10"),
        ("/etc/alternatives/python3", b"VERSION_CODENAME=trixie\n", "3.13"),
        (None, b'NAME="\xff"\nVERSION_CODENAME=jammy\n', "3.10"),  # bytes that are no text elsewhere in the file
        (None, b"ID=alpine\n", None),
        (None, None, None),
    ],
)
def test_python_of_a_base_is_read_and_its_container_removed(link, release, python):
    looked, created = Looked(link, release), []
    create = lambda *requested, **named: created.append((requested, named)) or looked  # noqa: E731
    client = SimpleNamespace(containers=SimpleNamespace(create=create))
    assert base.python_of(client, "sha256:any") == python
    assert created == [(("sha256:any", ["true"]), {"labels": orphan_cleanup.label()})]
    assert looked.removed is True
    other = OtherBase(name="any:1", id="sha256:any")
    if python in (None, "3.12"):
        base.refuse_held(GFX1100, client, other)
    else:
        with pytest.raises(RocmatrixError, match="RM113") as refused:
            base.refuse_held(GFX1100, client, other)
        assert (refused.value.why, refused.value.where) == ("read from the image", "--base")
        assert refused.value.what.startswith(f"any:1 brings Python {python}, ")
        assert created[-1][0][0] == "sha256:any"
        base.refuse_held(UNBOUND, client, other)


def test_python_of_a_base_whose_files_cannot_be_read_is_unknown():
    archives = (
        b"no archive",
        release_archive(b"VERSION_CODENAME=jammy\n", name="other"),
        release_archive(b"", kind=tarfile.DIRTYPE),
    )
    for archive in archives:
        looked = Looked(None, b"")
        looked.get_archive = lambda path, archive=archive: ([archive], None)
        client = SimpleNamespace(containers=SimpleNamespace(create=lambda *_, looked=looked, **__: looked))
        assert base.python_of(client, "any") is None
        assert looked.removed is True


@pytest.mark.parametrize(
    ("name", "distribution", "python"),
    [
        ("rocm/dev-ubuntu-22.04:6.3", "jammy", "3.10"),
        ("rocm/dev-ubuntu-22.04", "jammy", "3.10"),  # without a tag: its latest
        ("docker.io/rocm/dev-ubuntu-22.04:7.1-complete", "jammy", "3.10"),
        ("docker.io/library/ubuntu:22.04@sha256:" + "1" * 64, "jammy", "3.10"),
        ("debian:12-slim", "bookworm", "3.11"),
    ],
)
def test_public_base_of_another_python_is_refused_with_its_distribution(name, distribution, python):
    with pytest.raises(RocmatrixError, match="RM113") as refused:
        base.refuse_known(GFX1100, name)
    assert refused.value.why == f"its distribution is {distribution}"
    assert refused.value.what.startswith(f"{name} brings Python {python}, and the wheels of {GFX1100.name}")
    base.refuse_known(UNBOUND, name)  # nothing of it is bound to a Python


@pytest.mark.parametrize("name", ["rocm/dev-ubuntu-24.04:7.2", "ubuntu:24.04", "registry.example/mine:1", None])
def test_base_of_the_same_python_or_of_an_unknown_one_passes(name):
    base.refuse_known(GFX1100, name)


def test_cell_is_bound_to_its_python_by_any_wheel_of_it():
    files = [file for file, _ in GFX1100.wheels]
    assert any("-cp312-cp312" in file for file in files) and not all("-cp312-cp312" in file for file in files)
    assert (base.bound(GFX1100), base.bound(UNBOUND)) == (True, False)
    bound = tuple(row for row in GFX1100.wheels if "-cp312-cp312" in row[0])
    for wheels, expected in ((bound, True), (tuple(row for row in GFX1100.wheels if row not in bound), False)):
        assert base.bound(GFX1100.model_copy(update={"wheels": wheels})) is expected
