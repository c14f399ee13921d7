"""Each rule on an environment's paths by itself, on rows that are made up, and how each refusal is worded."""

import hashlib
import zipfile
from types import SimpleNamespace

import pytest

from rocmatrix.verify.files import environment, installed, wheel
from rocmatrix.verify.files.installed import Expected
from rocmatrix.verify.files.tree import Row, Tree
from tests.fixtures import cells

SITE = "/opt/venv/lib/python3.12/site-packages"
PRUNED = cells.MATRIX.cell("rocm7.2-torch2.12.1-gfx1100")
KERNELS = f"{SITE}/torch/lib/rocblas/library/Kernels.so-000-gfx906.hsaco"


def row(kind="file", mode=0o644, content=b"", **more):
    sha256 = hashlib.sha256(content).digest() if kind == "file" else b""
    return Row(kind=kind, mode=mode, **({"uid": 0, "gid": 0, "sha256": sha256} | more))


def member(mode=0o644, sha256=None):
    return SimpleNamespace(mode=mode, sha256=sha256, is_installed_as=lambda found: found.sha256 == sha256)


def expected(**fields):
    blank = {"files": {}, "written": {}, "links": {}, "records": {}, "folders": set()}
    return Expected(**(blank | fields))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/a/__pycache__/b.cpython-312.pyc", "/a/b.py"),
        ("/a/__pycache__/b.c.cpython-312.pyc", "/a/b.c.py"),
        ("/a/b.cpython-312.pyc", None),
        ("/a/__pycache__/b.cpython-312.py", None),
        ("/a/__pycache__/b.pyc", None),
        ("/a/__pycache__/b.pypy-312.pyc", None),
        ("/a/__pycache__/cpython-312.pyc", "/a/.py"),
        ("/__pycache__/a/b.cpython-312.pyc", None),
    ],
)
def test_byte_code_belongs_to_the_source_of_its_name(path, source):
    assert installed.source_of(path) == source


@pytest.mark.parametrize(
    ("path", "others", "cache"),
    [
        ("/a/__pycache__", ["/a/b.py"], True),
        ("/a/__pycache__", ["/a/b/c.py"], True),
        ("/a/__pycache__", ["/ab/c.py", "/a/b.txt"], False),
        ("/a/__pycache__x", ["/a/b.py"], False),
        ("/a/b", ["/a/b.py"], False),
    ],
)
def test_folder_for_byte_code_is_next_to_a_source(path, others, cache):
    rows = {path: row("folder")} | {other: row() for other in others}
    assert installed._is_cache(path, rows) is cache
    assert list(installed._unlisted(rows, expected(files={other: [] for other in others}))) == ([] if cache else [path])


def test_byte_code_of_a_listed_source_is_a_file():
    source, code = "/a/b.py", "/a/__pycache__/b.cpython-312.pyc"
    listed = expected(files={source: []}, folders={"/a"})
    rows = {"/a": row("folder"), source: row(), "/a/__pycache__": row("folder")}
    assert list(installed._unlisted(rows | {code: row()}, listed)) == []
    assert list(installed._unlisted(rows | {code: row("link", link="/tmp/x")}, listed)) == [code]
    assert list(installed._unlisted(rows | {"/a/__pycache__/b.pyc": row()}, listed)) == ["/a/__pycache__/b.pyc"]


def test_programs_that_test_torch_may_be_missing_from_every_cell():
    cell = SimpleNamespace(prune=False, architecture=None)
    site = "/opt/venv/lib/python3.12/site-packages"
    gone = (f"{site}/torch/test/atest", f"{site}/torch/bin/protoc", f"{site}/torch/bin/upgrader_models/a.ptl")
    stay = (
        *(f"{site}/torch/bin/torch_shm_manager", f"{site}/torch/testing/_creation.py", f"{site}/torch/lib/libc10.so"),
        *(f"{site}/torch/test", f"{site}/numpy/test/a", f"{site}/a/torch/test/b", "/opt/venv/lib/torch/test/a"),
    )
    assert [path for path in (*gone, *stay) if installed._pruned(path, cell)] == list(gone)


@pytest.mark.parametrize(
    ("path", "change", "pruned"),
    [
        (KERNELS, {}, True),
        (KERNELS.replace("gfx906", "gfx1100"), {}, False),
        (f"{SITE}/elsewhere/Kernels.so-000-gfx906.hsaco", {}, False),
        (f"{SITE}/torch/lib/rocblas/library/TensileManifest.txt", {}, False),
        (KERNELS, {"prune": False}, False),
    ],
)
def test_prune_stage_takes_kernels_of_other_architectures_away(path, change, pruned):
    cell = SimpleNamespace(**{"prune": True, "architecture": "gfx1100"} | change)
    assert installed._pruned(path, cell) is pruned
    cell.architecture = None
    assert installed._pruned(path, cell) is False


@pytest.mark.parametrize(
    ("path", "found", "named"),
    [
        ("/opt/venv/a", row(), None),
        ("/opt/venv/a", row(mode=0o755), "(755 0:0)"),
        ("/opt/venv/run", row(mode=0o755), None),
        ("/opt/venv/run", row(mode=0o644), "(644 0:0)"),
        ("/opt/venv/bin/written", row(mode=0o755), None),
        ("/opt/venv/bin/written", row(mode=0o644), None),
        ("/opt/venv/bin/written", row(mode=0o600), "(600 0:0)"),
        ("/opt/venv/bin/member", row(mode=0o755), "(755 0:0)"),
        ("/opt/venv/written", row(mode=0o755), "(755 0:0)"),
        ("/opt/venv/unlisted", row(mode=0o644), None),
        ("/opt/venv/folder", row("folder", mode=0o755), None),
        ("/opt/venv/folder", row("folder", mode=0o644), "(644 0:0)"),
        ("/opt/venv/a", row("link", mode=0o777, uid=7), None),
        ("/opt/venv/a", row(gid=7), "(644 0:7)"),
        ("/opt/venv/a", row(uid=7), "(644 7:0)"),
        ("/opt/venv/a", row(attributes=("b", "c")), "(644 0:0 b c)"),
    ],
)
def test_mode_and_owner_are_as_pip_leaves_them(path, found, named):
    files = {"/opt/venv/a": [member()], "/opt/venv/run": [member(0o755)], "/opt/venv/bin/member": [member()]}
    listed = expected(files=files, written={"/opt/venv/bin/written": set(), "/opt/venv/written": set()})
    first = {"/opt/venv/link": row("link", mode=0o777)}  # the paths behind a link are looked at as well
    assert list(installed._other_mode(first | {path: found}, listed)) == ([f"{path} {named}"] if named else [])


def wheel_of(name, *files, commands=()):
    about = f"{SITE}/{name}-1.dist-info"
    named = {f"{SITE}/{file}": member() for file in files}
    return wheel.Wheel(file=f"{name}-1.whl", about=about, files=named, commands=dict.fromkeys(commands, "m:f"))


def record(*lines, about):
    return "".join(
        f"{line}\n" for line in (*lines, f"{about}/INSTALLER,,", f"{about}/REQUESTED,,", f"{about}/RECORD,,")
    )


def test_record_is_compared_though_one_before_it_is_missing_or_no_text():
    one, two, three = (wheel_of(name, f"{name}/a.py") for name in ("one", "two", "three"))
    listed = expected(records={each.record: each for each in (one, two, three)})
    tree = Tree()
    tree.texts[two.record] = b"\xff\n" + record("two/a.py,,", about="two-1.dist-info").encode()
    rows = {two.record: row(), three.record: row()}
    found = list(installed._records(tree, rows, listed))
    assert found[0].startswith(f"{two.record} on {SITE}/\ufffd")
    own = {f"{three.about}/{name}" for name in ("INSTALLER", "REQUESTED", "RECORD")} | {f"{SITE}/three/a.py"}
    assert found[1:] == [f"{three.record} on {name}" for name in sorted(own)]


def test_digest_of_a_record_has_to_be_the_files_unless_wheels_share_it():
    digest = "sha256=" + "A" * 43
    one, two = wheel_of("one", "shared.py", "own.py"), wheel_of("two", "shared.py")
    tree = Tree()
    lines = [f"shared.py,{digest},1", f"own.py,{digest},1"]
    tree.texts[one.record] = record(*lines, about="one-1.dist-info").encode()
    rows = {one.record: row(), f"{SITE}/shared.py": row(), f"{SITE}/own.py": row()}
    files = {f"{SITE}/shared.py": [member(), member()], f"{SITE}/own.py": [member()]}
    found = list(installed._records(tree, rows, expected(files=files, records={one.record: one, two.record: two})))
    assert found == [f"{one.record} on {SITE}/own.py"]
    assert installed._shared(expected(files=files | {"/x": [member()] * 3})) == {f"{SITE}/shared.py", "/x"}


def archive_of(path, names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_wheels_are_all_closed_after_a_comparison(tmp_path):
    names = [f"a-1.dist-info/{name}" for name in ("WHEEL", "RECORD")]
    opened = [wheel.opened(archive_of(tmp_path / f"{n}.whl", names), name="a", site=SITE) for n in "ab"]
    empty = wheel.Wheel(file="empty", about="x", files={})
    installed._close([empty, *opened])
    assert [each.archive.fp for one in opened for each in one.files.values()] == [None, None]


def test_names_of_locked_wheels_replace_the_distributions_own(monkeypatch):
    queried = {}
    found = environment.Environment(python="3.12")
    monkeypatch.setattr(environment, "bundled", lambda *given, locked: queried.update(given=given, locked=locked) or [])
    monkeypatch.setattr(environment, "activation", lambda *given: queried.update(activation=given) or {"/x": {b""}})
    tree = Tree()
    tree.texts[environment.CONFIGURATION] = b""
    locked = [wheel.Wheel(file=name, about=f"{SITE}/a", files={}) for name in ("Some.Pkg-1-py3.whl", "pip-24-py3.whl")]
    made = installed._expected(tree, found, locked)
    assert queried == {"given": (tree, found), "locked": {"some-pkg", "pip"}, "activation": (tree,)}
    assert made.written["/x"] == {b""}


def locked_cell(folder, *files):
    hashed = {file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in files}
    wheels = [(file, SimpleNamespace(sha256=sha256)) for file, sha256 in hashed.items()]
    return SimpleNamespace(unlocked_because=None, wheels=wheels, prune=True, architecture="gfx1100")


CONFIGURATION = (
    "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.12.3\nexecutable = /usr/bin/python3.12\n"
    "command = /usr/bin/python3 -m venv /opt/venv\n"
)


def environment_tree():
    tree = Tree()
    tree.texts[environment.CONFIGURATION] = CONFIGURATION.encode()
    tree.rows[environment.CONFIGURATION] = row(content=CONFIGURATION.encode())
    return tree


def test_wheel_that_is_none_is_named_with_what_is_wrong(tmp_path):
    (tmp_path / "a-1.whl").write_bytes(b"no archive")
    archive_of(tmp_path / "b-1.whl", ["b.py"])
    found = installed.check(environment_tree(), locked_cell(tmp_path, "a-1.whl", "b-1.whl"), tmp_path)
    (finding,) = found.findings
    assert (found.name, found.summary) == ("files", "no wheels to compare with")
    what = f"the locked wheels are not in {tmp_path}, or not whole; --wheelhouse names another folder"
    assert (finding.code, finding.what) == ("RM660", what)
    assert finding.places == ("a-1.whl (File is not a zip file)", "b-1.whl (b-1.whl has no .dist-info/WHEEL)")


def test_cell_without_a_lock_and_tree_without_an_environment_name_why(tmp_path):
    unlocked = next(cell for cell in cells.MATRIX.cells if cell.unlocked_because)
    for cell, tree, summary, what in (
        (unlocked, Tree(), "no lock", f"the cell has no lock to compare with: {unlocked.unlocked_because}"),
        (PRUNED, Tree(), "no environment", "not as venv writes it"),
    ):
        found = installed.check(tree, cell, tmp_path)
        (finding,) = found.findings
        assert (found.name, found.summary, finding.code, finding.what) == ("files", summary, "RM660", what)


def test_summary_counts_files_wheels_and_paths(tmp_path):
    archive_of(tmp_path / "a-1.whl", ["a.py", "a-1.dist-info/WHEEL", "a-1.dist-info/RECORD"])
    found = installed.check(environment_tree(), locked_cell(tmp_path, "a-1.whl"), tmp_path)
    assert (found.name, found.data) == ("files", {"files": 2})
    assert found.summary == "2 files of 1 locked wheels, by their bytes, in 1 paths"
    assert {finding.code for finding in found.findings} == {"RM660"}
    (missing,) = [finding for finding in found.findings if finding.what == "missing"]
    assert f"{SITE}/a.py" in missing.places
