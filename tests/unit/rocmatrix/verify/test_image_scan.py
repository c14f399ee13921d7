"""What a scan of an image's files finds."""

from rocmatrix.matrix.kernel_library import KernelLibrary
from rocmatrix.matrix.statement import Evidence
from rocmatrix.verify import hygiene, image_scan
from rocmatrix.verify.devicecode.filetree import on_disk
from rocmatrix.verify.devicecode.inspection import inspect
from tests.fixtures import cells
from tests.fixtures import device_code as synthetic
from tests.fixtures.trees import entry, write

SEEN = Evidence(sources=["a test"], confidence="reported", date="2026-11-21")
KNOWN = [
    KernelLibrary(library=name, files=files, prune=False, note="SYNTHETIC", evidence=SEEN)
    for name, files in (("one", "/one/"), ("two", "/(?:one|two)/"), ("three", "/three/"))
]
CODE = synthetic.code_object("gfx1100")


def test_package_is_known_by_its_metadata_not_by_its_folder(tmp_path):
    about = b"Metadata-Version: 2.1\nName: Some.Package\nVersion: 1.2+cpu\n\nText\nVersion: 9\n"
    write(tmp_path, {"opt/venv/lib/python3.12/site-packages/other-9.9.dist-info/METADATA": about})
    assert image_scan.read(on_disk(tmp_path), cells.MATRIX.kernels).packages == {"some-package": "1.2+cpu"}


def test_files_are_those_of_the_first_library_that_fits_or_of_none():
    entries = [
        entry("/x", b"", kind="folder"),
        entry("/x/one/a.co", CODE),
        entry("/x/two/b.co", CODE),
        entry("/x/two/empty", b""),
        entry("/x/two/text", b"words"),
        entry("/x/other/c.co", CODE),
        entry("/x/two/link", b"", kind="link"),
    ]
    found = image_scan.read(entries, KNOWN)
    code = [inspect(entries[place]) for place in (1, 2, 5)]
    assert found.libraries == (
        image_scan.Library(name="one", paths=("/x/one/a.co",), files=(code[0],)),
        image_scan.Library(name="two", paths=("/x/two/b.co", "/x/two/empty", "/x/two/text"), files=(code[1],)),
        image_scan.Library(name="three", paths=(), files=()),
    )
    assert (found.others, found.files, found.size) == ((code[2],), 5, 3 * len(CODE) + 5)
    assert (found.host_torch, found.packages) == (False, {})
    assert found.library("two") is found.libraries[1]
    assert found.library("four") == image_scan.Library(name="four", paths=(), files=())


def test_host_torch_is_known_by_its_library_wherever_it_stands():
    paths = ["/a/torch/lib/libtorch_cpu.so", "/b", "/b/libtorch_cpu.so"]
    assert image_scan.read([entry(path, b"x") for path in paths], KNOWN).host_torch
    assert not image_scan.read([entry(path, b"x") for path in paths[1:]], KNOWN).host_torch
    assert image_scan.read([], KNOWN).host_torch is False


def test_entries_are_taken_up_by_a_tree_and_by_hygiene_as_well():
    class Taken(list):
        look = list.append

    tree, tests = Taken(), [entry("/x/a.whl", b"x"), entry("/x/b.whl", b"x")]
    found = image_scan.read(tests, KNOWN, tree=tree)
    assert tree == tests
    scan = hygiene.HygieneScan()
    for each in tests:
        scan.look(each)
    assert found.violations == scan.found
    assert any(found.violations.values())


def test_packages_of_the_distribution_and_files_of_other_names_are_no_wheels():
    about = b"Name: a\nVersion: 1\n\n"
    place = "/opt/venv/lib/python3.12/site-packages/a-1.dist-info"
    two = [entry(place.replace("a-1", name) + "/METADATA", f"Name: {name}\n\n".encode()) for name in ("b", "c")]
    assert image_scan.read(two, KNOWN).packages == {"b": "?", "c": "?"}
    of_debian = [f"{folder}/site-packages/a-1.dist-info/METADATA" for folder in hygiene.DISTRIBUTION]
    for path in (*of_debian, f"{place}/RECORD"):
        assert image_scan.read([entry(path, about)], KNOWN).packages == {}
    assert image_scan.read([entry(f"{place}/METADATA", b"Text: x\n\n")], KNOWN).packages == {"?": "?"}
    late = b"X: " + b"x" * image_scan.SMALL + b"\nName: a\nVersion: 1\n\n"  # beyond what is read
    assert image_scan.read([entry(f"{place}/METADATA", late)], KNOWN).packages == {"?": "?"}
    fits = b"X: " + b"x" * (image_scan.SMALL - 25) + b"\nName: a\nVersion: 1\n"
    assert image_scan.read([entry(f"{place}/METADATA", fits)], KNOWN).packages == {"a": "1"}
