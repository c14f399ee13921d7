"""What each check of a proof is given, and what is read of an image: the engine and the checks are STAND-INS."""

import io
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmatrix.containers import engine, orphan_cleanup
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import hygiene, image_scan, kernel_code, label_check, packages, proof, settings, size
from rocmatrix.verify.files import byte_code, installed, source, system
from rocmatrix.verify.files.tree import Tree
from rocmatrix.verify.finding import Check, Finding
from tests.fixtures import cells
from tests.fixtures.trees import tar, write

CELL = cells.GFX1100
FILES = {"/etc/a": b"a", "/opt/b": b"bc"}
LIBRARIES = ["torch", "rocBLAS"]
MODULES = (label_check, settings, kernel_code, packages, hygiene, size, installed, source, system, byte_code)


class Container:
    """A container that is exported as `content`, and removed."""

    def __init__(self, content):
        self.content, self.removed = content, []

    def export(self):
        half = len(self.content) // 2
        return iter([self.content[:half], self.content[half:]])

    def remove(self, *, force):
        self.removed.append(force)


class Client:
    """An engine with images by id, and the containers that were made."""

    def __init__(self, **images):
        self.held, self.made, self.closed = images, [], False
        self.images = SimpleNamespace(get=lambda id_: SimpleNamespace(attrs=self.held[id_]))
        self.containers = SimpleNamespace(create=self.create)
        self.content = tar(FILES)

    def create(self, image, command, **more):
        container = Container(self.content)
        self.made.append((image, command, more, container))
        return container

    def close(self):
        self.closed = True


def attributes(*layers, config=None):
    return {"RootFS": {"Layers": list(layers)}, "Config": config}


@pytest.fixture
def check_stubs(monkeypatch):
    """What each check was given, by its name; a check passes unless its name is in `failing`."""
    found = SimpleNamespace(failing=set(), given={})

    def stand_in(module):
        def check(*args, **kwargs):
            found.given[module.NAME] = (args, kwargs)
            wrong = (Finding(code="RM217", what="x"),) if module.NAME in found.failing else ()
            return Check(name=module.NAME, summary="simulated", findings=wrong)

        return check

    for module in MODULES:
        monkeypatch.setattr(module, "check", stand_in(module))
    return found


@pytest.fixture
def client(monkeypatch):
    """An engine that holds the image, sha256:i, and no base."""
    made = Client(i=attributes("l1", "l2", config={"Labels": {"a": "1"}, "User": 7}))
    named = {"rocmatrix:t": engine.Image(id="i", labels={"a": "1"}, size=1)}

    def image(given, name):
        assert given is made
        return named.get(name)

    def connect(*, work):
        assert work is True
        return made

    monkeypatch.setattr(engine, "image", image)
    monkeypatch.setattr(engine, "connect", connect)
    made.named = named
    return made


MATRIX = SimpleNamespace(
    kernels=cells.MATRIX.kernels,
    kernel_libraries_of=lambda cell: [SimpleNamespace(library=name) for name in LIBRARIES if cell is CELL],
    baseline=lambda name: f"baseline of {name}",
)


def prove(**more):
    return proof.of_image(MATRIX, CELL, "rocmatrix:t", today="2026-11-22", root=Path("/root"), **more)


def test_check_receives_what_it_compares(client, check_stubs):
    found = prove(recorded="recorded", accept="a reason")
    given = check_stubs.given
    assert given[label_check.NAME] == (({"a": "1"},), {"user": "7", "cell": CELL, "inherited": None})
    assert given[settings.NAME] == ((client.held["i"], CELL, None), {})
    contents = given[kernel_code.NAME][0][0]
    assert isinstance(contents, image_scan.Contents)
    assert given[kernel_code.NAME][1] == {
        "architecture": "gfx1100", "known": MATRIX.kernels, "required": LIBRARIES, "alone": CELL.one_architecture,
    }  # fmt: skip
    assert given[packages.NAME] == ((contents.packages, CELL), {})
    assert given[hygiene.NAME] == ((contents.violations,), {"files": 2})
    assert given[size.NAME] == (
        (3, f"baseline of {CELL.name}"),
        {"cell": CELL.name, "today": "2026-11-22", "recorded": "recorded", "accept": "a reason"},
    )
    tree = given[installed.NAME][0][0]
    assert tree.rows.keys() == FILES.keys()
    wheels = Path("/root/.rocmatrix/wheelhouse") / f"{CELL.lock_name}-py{CELL.python}"
    assert given[installed.NAME] == ((tree, CELL, wheels), {})
    assert given[source.NAME] == ((tree, Path("/root")), {})
    assert given[system.NAME] == ((tree, ["l1", "l2"], None), {})
    assert given[byte_code.NAME] == ((client, "i", tree), {"root": Path("/root"), "clean": True})
    assert (found.cell, found.architecture, found.subject) == (CELL.name, "gfx1100", "image rocmatrix:t")
    assert found.of_image
    assert found.proven
    assert {check.name for check in found.checks} == proof.EVERY_CHECK
    assert client.closed


def test_wheels_of_another_folder_are_compared_with_where_they_are_named(client, check_stubs):
    prove(wheels=Path("/w"))
    assert check_stubs.given[installed.NAME][0][2] == Path("/w")
    assert check_stubs.given[size.NAME][1] == {"cell": CELL.name, "today": "2026-11-22", "recorded": None, "accept": ""}


@pytest.mark.parametrize(("failing", "clean"), [(size.NAME, True), (hygiene.NAME, False), (source.NAME, False)])
def test_byte_code_is_compiled_where_all_but_the_size_passed(client, check_stubs, failing, clean):
    check_stubs.failing.add(failing)
    assert not prove().proven
    assert check_stubs.given[byte_code.NAME][1]["clean"] is clean


def test_image_without_settings_is_checked_as_one_without(client, check_stubs):
    client.held["i"] = attributes(config={})
    prove()
    assert check_stubs.given[label_check.NAME] == (({},), {"user": "", "cell": CELL, "inherited": None})


def test_image_that_is_not_there_is_rm203(client, check_stubs):
    client.named.clear()
    with pytest.raises(RocmatrixError, match="RM203") as caught:
        prove()
    assert caught.value.what == "the engine holds no image rocmatrix:t"
    assert client.closed


def test_container_for_reading_is_never_started_belongs_to_this_program_and_is_removed(
    client, check_stubs, monkeypatch
):
    monkeypatch.setattr(orphan_cleanup, "label", lambda: {"owner": "test"})
    prove()
    ((image, command, more, container),) = client.made
    assert (image, command) == ("i", ["true"])
    assert more == {"entrypoint": [], "network_disabled": True, "labels": {"owner": "test"}}
    assert container.removed == [True]


def test_export_that_breaks_off_is_rm221_and_leaves_no_container(client):
    client.content = b"no archive at all" * 100
    with pytest.raises(RocmatrixError, match="RM221") as caught:
        proof.exported(client, "i", MATRIX)
    assert caught.value.where == "i"
    assert caught.value.what.startswith("the engine's export breaks off: ")
    assert isinstance(caught.value.__cause__, tarfile.TarError)
    assert client.made[0][3].removed == [True]


BASE = attributes("l1", config={"Env": ["A=1"]})


@pytest.mark.parametrize(
    ("labels", "held", "image", "name", "own"),
    [
        ({}, {CELL.base.reference: "b"}, "b", CELL.base.reference, True),
        ({}, {}, None, "", False),
        ({"org.rocmatrix.base": "m/u:1"}, {"m/u:1": "b"}, "b", "m/u:1", False),
        ({"org.rocmatrix.base": "m/u:1"}, {CELL.base.reference: "b"}, None, "", False),
        ({"org.rocmatrix.base": "m/u:1", "org.rocmatrix.base.id": "x"}, {"x": "b", "m/u:1": "c"}, "b", "m/u:1", False),
        ({"org.rocmatrix.base": "m/u:1", "org.rocmatrix.base.id": "x"}, {"m/u:1": "c"}, "c", "m/u:1", False),
    ],
)
def test_base_is_the_one_that_the_labels_name_else_the_cells_own(client, labels, held, image, name, own):
    client.held |= {"b": BASE, "c": BASE}
    client.named |= {key: engine.Image(id=id_, labels={}, size=1) for key, id_ in held.items()}
    found = proof.base_of(client, labels, CELL)
    if image is None:
        assert found is None
        return
    assert (found.name, found.own, found.layers, found.config) == (name, own, ("l1",), {"Env": ["A=1"]})
    assert found.rows.keys() == FILES.keys()
    assert client.made[0][0] == image


def test_base_is_handed_to_the_checks_of_settings_and_system(client, check_stubs):
    client.held["b"] = attributes("l1", config=None)
    client.named[CELL.base.reference] = engine.Image(id="b", labels={}, size=1)
    prove()
    base = check_stubs.given[system.NAME][0][2]
    assert (base.name, base.config) == (CELL.base.reference, {})
    assert check_stubs.given[settings.NAME][0][2] is base.config


def test_labels_of_the_base_are_handed_to_the_check_of_labels(client, check_stubs):
    client.held["b"] = attributes("l1", config={"Labels": {"m": "1"}})
    client.named[CELL.base.reference] = engine.Image(id="b", labels={}, size=1)
    prove()
    assert check_stubs.given[label_check.NAME][1]["inherited"] == {"m": "1"}


def test_folder_is_proven_for_its_device_code_alone(check_stubs, tmp_path):
    write(tmp_path, FILES)
    found = proof.of_tree(MATRIX, CELL, tmp_path)
    assert list(check_stubs.given) == [kernel_code.NAME]
    (contents,), given = check_stubs.given[kernel_code.NAME]
    assert contents.files == 2
    assert given["required"] == LIBRARIES
    assert (found.cell, found.architecture, found.subject) == (CELL.name, "gfx1100", f"folder {tmp_path}")
    assert not found.of_image
    left_out = [check for check in found.checks if check.name != kernel_code.NAME]
    assert {check.name for check in left_out} == proof.EVERY_CHECK - {kernel_code.NAME}
    assert {(check.status, check.summary) for check in left_out} == {("not checked", "a folder is no image")}
    proof.of_tree(MATRIX, CELL, tmp_path, only=["MIOpen"])
    assert check_stubs.given[kernel_code.NAME][1]["required"] == ["MIOpen"]


def test_folder_that_is_none_and_library_that_is_unknown_are_refused(check_stubs, tmp_path):
    with pytest.raises(RocmatrixError, match="RM221") as caught:
        proof.of_tree(MATRIX, CELL, tmp_path / "none")
    assert caught.value.where == str(tmp_path / "none")
    with pytest.raises(RocmatrixError, match="RM404") as caught:
        proof.of_tree(MATRIX, CELL, tmp_path, only=["rocblas"])
    assert caught.value.what == "no kernel library is called 'rocblas'"
    assert "rocBLAS" in caught.value.next


def made(*checks, of_image=False):
    return proof.Proof(cell="c", architecture="gfx1100", subject="s", checks=checks, of_image=of_image)


def check(name, **more):
    return Check(name=name, summary="", **more)


def test_proof_is_described_with_its_checks_and_findings():
    one, two = (Finding(code="RM217", what=what) for what in ("one", "two"))
    found = made(check("a", findings=(one,)), check("b", findings=(two,)))
    assert found.findings == (one, two)
    assert found.described() == {
        "schema": 1, "cell": "c", "architecture": "gfx1100", "subject": "s", "proven": False,
        "checks": [each.described() for each in found.checks],
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(proof.EVERY_CHECK))
def test_image_is_proven_where_every_check_looked_but_the_size_which_may_be_a_first_one(name):
    whole = [check(each) for each in sorted(proof.EVERY_CHECK)]
    assert made(*whole, of_image=True).proven
    skipped = [check(each.name, skipped=each.name == name) for each in whole]
    assert made(*skipped, of_image=True).proven is (name == size.NAME)
    assert made(*skipped).proven
    missing = [each for each in whole if each.name != name]
    assert not made(*missing, of_image=True).proven
    failed = [check(each.name, findings=(Finding(code="RM217", what="x"),) * (each.name == name)) for each in whole]
    assert not made(*failed, of_image=True).proven


def test_tree_takes_up_every_entry_of_an_export(client):
    tree = Tree()
    contents = proof.exported(client, "i", MATRIX, tree=tree)
    assert (contents.files, tree.rows.keys()) == (2, FILES.keys())
    assert proof.exported(client, "i", MATRIX).files == 2


def test_export_is_read_in_large_pieces(client, monkeypatch):
    sizes = []
    whole = io.BufferedReader
    monkeypatch.setattr(
        io, "BufferedReader", lambda raw, buffer_size: sizes.append(buffer_size) or whole(raw, buffer_size)
    )
    proof.exported(client, "i", MATRIX)
    assert sizes == [1024 * 1024]
