"""Packages, hygiene, size and labels: each passes on what is right, and fails on each thing that is not."""

from dataclasses import replace

import pytest

from rocmatrix.images import render
from rocmatrix.matrix.kernel_library import Baseline
from rocmatrix.verify import hygiene, image_scan, label_check, packages, size
from rocmatrix.verify.devicecode.filetree import on_disk
from tests.fixtures import cells
from tests.fixtures.trees import entry, write

LOCKED = {wheel.name: wheel.version for _, wheel in cells.CPU.wheels}
UNLOCKED = next(cell for cell in cells.MATRIX.cells if cell.unlocked_because)
BASELINE = Baseline.model_validate(
    {"cell": cells.CPU.name, "sizes": [{"bytes": 1000, "date": "2026-11-21", "of": "a test"}]}
)
CLEAN = [
    entry("/tmp", b"", mode=0o1777, kind="folder"),
    entry("/cache", b"", mode=0o1777, kind="folder"),
    entry("/usr/bin/passwd", b"x", mode=0o4755),
    entry("/opt/venv/lib/a/__pycache__/a.pyc", b"\xa7\r\r\n\1\0\0\0" + bytes(8)),
    entry("/usr/lib/python3/dist-packages/__pycache__/a.pyc", b"\xa7\r\r\n\0\0\0\0"),
    entry("/opt/venv/lib/x.dist-info/direct_url.json", b'{"url": "https://somewhere"}'),
    entry("/usr/bin/python3", b"", mode=0o777, kind="link"),
]
PLANTED = {
    "files where a build leaves rubbish": entry("/var/lib/apt/lists/list", b"x"),
    "a cache": entry("/root/.cache", b"", kind="folder"),
    "a wheel": entry("/opt/torch.whl", b"x"),
    "a history": entry("/root/.bash_history", b"x"),
    "open to all": entry("/opt/open", b"", mode=0o777, kind="folder"),
    "set-user-ID or set-group-ID that no base brings": entry("/usr/bin/shell", b"x", mode=0o4755),
    "a device, pipe or socket": entry("/opt/pipe", b"", kind="other"),
    "a file capability or other attribute": entry("/usr/bin/env", b"x", attributes=("security.capability",)),
    "byte code outside the environment": entry("/opt/rocmatrix/trainer/__pycache__", b"", kind="folder"),
    "byte code with time stamps": entry("/opt/venv/lib/a/__pycache__/b.pyc", b"\xa7\r\r\n\0\0\0\0" + bytes(8)),
    "owned by a user that the image does not know": entry("/opt/mine", b"x", uid=1000),
    "a secret by its name": entry("/root/.docker/config.json", b"{}"),
    "a place on the builder's machine": entry("/opt/venv/x.dist-info/direct_url.json", b'{"url": "file:///home/me"}'),
}


def strays(found):
    collected = hygiene.Strays()
    for one in found:
        collected.look(one)
    return hygiene.check(collected.found, files=len(found))


def test_locked_set_passes_with_what_the_environment_brings():
    found = packages.check(LOCKED | {"pip": "24.0"}, cells.CPU)
    assert (found.status, len(LOCKED) > 10) == ("passed", True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"torch": "2.12.0+cpu"}, "of another version: torch 2.12.0+cpu where"),
        ({"leftpad": "1.0"}, "installed and not locked: leftpad 1.0"),
        ({"torch": None}, "locked and not installed: torch"),
    ],
)
def test_difference_to_the_lock_fails(change, words):
    installed = {name: version for name, version in (LOCKED | change).items() if version is not None}
    (finding,) = packages.check(installed, cells.CPU).findings
    assert (finding.code, words in finding.words) == ("RM216", True), finding.words


def test_empty_install_and_empty_lock_both_fail():
    assert packages.check({}, cells.CPU).status == "failed"
    (finding,) = packages.check(LOCKED, UNLOCKED).findings
    assert (finding.code, "no lock to compare with" in finding.what) == ("RM216", True)


def test_package_is_known_by_its_metadata_not_by_its_folder(tmp_path):
    about = b"Metadata-Version: 2.1\nName: Some.Package\nVersion: 1.2+cpu\n\nText\nVersion: 9\n"
    write(tmp_path, {"opt/venv/lib/python3.12/site-packages/other-9.9.dist-info/METADATA": about})
    assert image_scan.read(on_disk(tmp_path), cells.MATRIX.kernels).packages == {"some-package": "1.2+cpu"}


def test_clean_image_passes():
    assert strays(CLEAN).findings == ()
    assert strays(CLEAN).name == "hygiene"
    assert strays(CLEAN).summary == f"{len(hygiene.RULES)} rules on {len(CLEAN)} files"


@pytest.mark.parametrize(
    "there",
    [
        entry("/usr/bin/link", b"", mode=0o6777, kind="link"),  # the mode of a link is no one's
        entry("/opt/venv/lib/a/__pycache__/c.pyc", b"\xa7\r\r\n\1\0\0\0\5" + bytes(7)),
        entry("/opt/venv/lib/a.json", b'{"url": "file:///home/me"}'),
        entry("/opt/direct_url.json", b'{"url": "file:///home/me"}', kind="folder"),
    ],
)
def test_path_that_resembles_a_stray_is_none(there):
    assert strays([*CLEAN, there]).findings == ()


def test_hygiene_rules_are_each_broken_once_here():
    assert PLANTED.keys() == hygiene.RULES.keys()


@pytest.mark.parametrize("rule", PLANTED)
def test_planted_file_is_found(rule):
    (finding,) = strays([*CLEAN, PLANTED[rule]]).findings
    assert (finding.code, finding.what, finding.places) == ("RM217", rule, (PLANTED[rule].path,))


@pytest.mark.parametrize(
    ("path", "mode", "uid", "gid", "found"),
    [
        ("/usr/bin/su", 0o4755, 0, 0, False),
        ("/bin/su", 0o4755, 0, 0, False),  # where /bin is a folder of its own
        ("/usr/bin/chage", 0o2755, 0, 42, False),
        ("/usr/local/bin/su", 0o4755, 0, 0, True),
        ("/usr/bin/su", 0o6755, 0, 0, True),
        ("/usr/bin/su", 0o4775, 0, 0, True),
        ("/usr/bin/chage", 0o2755, 0, 0, True),
        ("/usr/bin/chage", 0o2755, 7, 42, True),
        ("/usr/bin/tee", 0o2755, 0, 0, True),
        ("/usr/bin/tee", 0o4755, 0, 0, True),
    ],
)
def test_set_id_is_allowed_by_path_mode_and_owner_alone(path, mode, uid, gid, found):
    findings = strays([*CLEAN, entry(path, b"x", mode=mode, uid=uid, gid=gid)]).findings
    assert [finding.places for finding in findings] == ([(path,)] if found else [])


@pytest.mark.parametrize("change", [{"mode": 0o777}, {"mode": 0o3777}, {"uid": 7}, {"gid": 7}])
def test_place_open_to_all_has_to_be_roots_and_sticky(change):
    planted = entry("/var/tmp", b"", kind="folder", **({"mode": 0o1777} | change))
    assert "open to all" in {finding.what for finding in strays([*CLEAN, planted]).findings}


@pytest.mark.parametrize(("numbers", "found"), [(("c", 1, 3), False), (("c", 1, 1), True), (("b", 1, 3), True)])
def test_nodes_are_known_by_their_numbers(numbers, found):
    node = entry("/dev/null", b"", mode=0o666, kind="other", device=numbers)
    assert bool(strays([*CLEAN, node]).findings) is found


def test_empty_file_list_fails():
    assert [finding.code for finding in strays([]).findings] == ["RM221"]


@pytest.mark.parametrize(("bytes_", "status"), [(900, "passed"), (1050, "passed"), (1051, "failed")])
def test_limit_of_size_is_relative(bytes_, status):
    assert size.check(bytes_, BASELINE, cell="x", today="2026-11-21").status == status


def test_first_size_is_not_checked_and_later_ones_are_compared_with_it():
    first = size.check(1234, None, cell="x", today="2026-11-21")
    assert (first.status, first.data["bytes"]) == ("not checked", 1234)
    assert "first size" in first.summary
    recorded = size.Recorded(bytes=1000, date="2026-11-21", of="the first image")
    for bytes_, status in ((1050, "passed"), (1051, "failed")):
        assert size.check(bytes_, None, cell="x", today="2026-11-22", recorded=recorded).status == status
    taken = size.check(9999, None, cell="x", today="2026-11-22", recorded=recorded, accept="new kernels")
    assert (taken.status, taken.summary.startswith("accepted: new kernels")) == ("passed", True)


def test_checkouts_baseline_comes_before_what_is_on_record():
    recorded = size.Recorded(bytes=10**9, date="2026-11-21", of="a bloated image")
    assert size.check(10**6, BASELINE, cell="x", today="2026-11-22", recorded=recorded).status == "failed"


def test_empty_image_has_no_size_to_take():
    for accept in ("", "why not"):
        assert size.check(0, None, cell="x", today="2026-11-22", accept=accept).status == "failed"


def labels(cell):
    import hashlib

    lock = hashlib.sha256(render.requirements_lock(cell).encode()).hexdigest()
    values = {"cell": cell.name, "torch": cell.release.torch, "rocm": "none", "architecture": "none", "lock": lock}
    return {f"org.rocmatrix.{name}": value for name, value in values.items()}


def test_cells_own_labels_pass():
    assert label_check.check(labels(cells.CPU), user="10001:10001", cell=cells.CPU).status == "passed"


@pytest.mark.parametrize("name", ["cell", "torch", "rocm", "architecture", "lock"])
def test_label_of_another_cell_fails(name):
    wrong = labels(cells.CPU) | {f"org.rocmatrix.{name}": "other"}
    (finding,) = label_check.check(wrong, user="10001:10001", cell=cells.CPU).findings
    assert (finding.code, len(finding.places)) == ("RM219", 1)


def test_missing_labels_and_root_fail():
    (finding,) = label_check.check({}, user="", cell=cells.CPU).findings
    assert len(finding.places) == 6


def test_check_that_was_left_out_never_passes():
    passed = size.check(1, BASELINE, cell="x", today="2026-11-21")
    assert replace(passed, skipped=True).status == "not checked"
