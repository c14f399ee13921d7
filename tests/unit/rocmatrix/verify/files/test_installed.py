"""An environment in a SYNTHETIC tree against wheels: as pip makes it, it passes; each change to it is named."""

import base64
import hashlib
import io
import tarfile
import zipfile
from dataclasses import replace

import pytest

from rocmatrix.verify.devicecode.filetree import in_tar
from rocmatrix.verify.files import environment, installed, wheel
from rocmatrix.verify.files.tree import Tree
from tests.fixtures import cells
from tests.fixtures.stand_ins import locked

SITE = "/opt/venv/lib/python3.12/site-packages"
CONFIGURATION = (
    "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.12.3\nexecutable = /usr/bin/python3.12\n"
    "command = /usr/bin/python3 -m venv /opt/venv\n"
)
MEMBERS = {
    "pkg/__init__.py": b"VALUE = 1\n",
    "pkg/data.bin": b"\0\1",
    "pkg/rocblas/library/Kernels.so-000-gfx906.hsaco": b"foreign",
    "pkg/rocblas/library/Kernels.so-000-gfx1100.hsaco": b"own",
    "pkg-1.0.data/scripts/tool": b"#!python\nprint(1)\n",
    "pkg-1.0.data/data/share/doc.txt": b"doc",
    "pkg-1.0.data/purelib/extra.py": b"",
    "pkg-1.0.dist-info/METADATA": b"Name: pkg\nVersion: 1.0\n",
    "pkg-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\n",
    "pkg-1.0.dist-info/entry_points.txt": b"[console_scripts]\nPkg-Run = pkg.main:Main.run [extra]\n[other]\nx = y\n",
}
COMMAND = (
    b"#!/opt/venv/bin/python\n# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom pkg.main import Main\n"
    b"if __name__ == '__main__':\n    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n"
    b"    sys.exit(Main.run())\n"
)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def record(rows):
    return "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in rows.items())


@pytest.fixture
def cell(tmp_path):
    """Return a pruned cell of one SYNTHETIC wheel in `tmp_path`, whose RECORD is wrong about one file."""
    path = tmp_path / "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
        info = zipfile.ZipInfo("pkg/run.sh")
        info.external_attr = 0o100755 << 16
        archive.writestr(info, b"#!/bin/sh\n")
        rows = record({**MEMBERS, "pkg/run.sh": b"#!/bin/sh\n"} | {"pkg/data.bin": b"stale"})
        rows += "pkg-1.0.data/purelib/extra.py,sha256=unreadable,0\n"
        archive.writestr("pkg-1.0.dist-info/RECORD", rows + "pkg-1.0.dist-info/RECORD,,\n")
    other = tmp_path / "other-1.0-py3-none-any.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("other-1.0.dist-info/WHEEL", "")
        archive.writestr("other-1.0.dist-info/RECORD", "other-1.0.dist-info/RECORD,,\n")
    own = cells.MATRIX.cell("rocm7.2-torch2.12.1-gfx1100")
    kept = {name: next(w for _, w in own.wheels if name in (w.name, w.index)) for name in ("torch", "python")}
    wheels = (locked(path, kept["torch"]), locked(other, kept["python"]))
    return own.model_copy(update={"wheels": wheels})


def installed_files():
    """Return {path: (content, mode)} as pip leaves the wheel, pruned for gfx1100."""
    data = {
        f"{SITE}/{name}": (content, 0o644)
        for name, content in MEMBERS.items()
        if ".data/" not in name and "gfx906" not in name
    }
    data |= {
        f"{SITE}/pkg/run.sh": (b"#!/bin/sh\n", 0o755),
        f"{SITE}/pkg/__pycache__/__init__.cpython-312.pyc": (b"code", 0o644),
        f"{SITE}/extra.py": (b"", 0o644),
        f"{SITE}/pkg-1.0.dist-info/INSTALLER": (b"pip\n", 0o644),
        f"{SITE}/pkg-1.0.dist-info/REQUESTED": (b"", 0o644),
        "/opt/venv/share/doc.txt": (b"doc", 0o644),
        "/opt/venv/bin/tool": (b"#!/opt/venv/bin/python\nprint(1)\n", 0o755),
        "/opt/venv/bin/Pkg-Run": (COMMAND, 0o755),
        "/opt/venv/bin/activate": (b"VIRTUAL_ENV=/opt/venv PS1='(venv) '", 0o644),
        "/usr/lib/python3.12/venv/scripts/common/activate": (b"VIRTUAL_ENV=__VENV_DIR__ PS1=__VENV_PROMPT__", 0o644),
        environment.CONFIGURATION: (CONFIGURATION.encode(), 0o644),
    }
    rows = {
        name.replace(f"{SITE}/", "").replace("/opt/venv/", "../../../"): content
        for name, (content, _) in data.items()
        if name.startswith((SITE, "/opt/venv/share", "/opt/venv/bin/tool", "/opt/venv/bin/Pkg"))
        and not name.endswith(".pyc")
    }
    rows["pkg/rocblas/library/Kernels.so-000-gfx906.hsaco"] = b"foreign"
    others = {"other-1.0.dist-info/WHEEL": b"", **{f"other-1.0.dist-info/{n}": c for n, c in wheel.ADDED.items()}}
    data |= {f"{SITE}/{name}": (content, 0o644) for name, content in others.items()}
    data[f"{SITE}/other-1.0.dist-info/RECORD"] = ((record(others) + "other-1.0.dist-info/RECORD,,\n").encode(), 0o644)
    data[f"{SITE}/pkg-1.0.dist-info/RECORD"] = ((record(rows) + "pkg-1.0.dist-info/RECORD,,\n").encode(), 0o644)
    return data


LINKS = {"bin/python3": "/usr/bin/python3", "bin/python": "python3", "bin/python3.12": "python3", "lib64": "lib"}


def tree_of(files, *, links=None, hard=None):
    """Read a tree back from a tar, as an engine exports it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in sorted({parent for path in files for parent in parents(path)}):
            member = tarfile.TarInfo(folder.strip("/"))
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        for path, (data, mode) in files.items():
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
        for kind, made in ((tarfile.SYMTYPE, links or {}), (tarfile.LNKTYPE, hard or {})):
            for path, target in made.items():
                member = tarfile.TarInfo(path.lstrip("/"))
                member.type, member.linkname, member.mode = kind, target, 0o644
                archive.addfile(member)
    buffer.seek(0)
    tree = Tree()
    tree.look_all(in_tar(buffer))
    return tree


def parents(path):
    folders = path.split("/")[1:-1]
    return ["/" + "/".join(folders[: i + 1]) for i in range(len(folders))]


def check(cell, folder, files=None, *, links=None, hard=None):
    links = {f"/opt/venv/{name}": target for name, target in (LINKS | (links or {})).items() if target}
    return installed.check(tree_of(files or installed_files(), links=links, hard=hard), cell, folder)


def places(found):
    return {finding.what: set(finding.places) for finding in found.findings}


def test_environment_as_pip_leaves_it_passes(cell, tmp_path):
    assert places(check(cell, tmp_path)) == {}


CHANGED, STRAY, MODE = "of other bytes than their wheel's", "of no locked wheel", "of another mode or owner"
RECORDS, MISSING = "RECORD is not what pip wrote", "missing"
TAMPERED = {
    f"{SITE}/pkg/__init__.py": (b"VALUE = 2\n", CHANGED),
    f"{SITE}/pkg/data.bin": (b"other", CHANGED),  # neither what the wheel's RECORD says nor what it holds
    f"{SITE}/pkg-1.0.dist-info/METADATA": (b"Name: pkg\nVersion: 1.0\n\n", CHANGED),
    f"{SITE}/pkg-1.0.dist-info/INSTALLER": (b"uv\n", CHANGED),
    "/opt/venv/bin/tool": (b"#!/bin/sh\nprint(1)\n", CHANGED),
    "/opt/venv/bin/Pkg-Run": (COMMAND.replace(b"Main.run", b"Main.evil"), CHANGED),
    "/opt/venv/bin/activate": (b"VIRTUAL_ENV=/opt/venv PS1='(venv) ';evil", CHANGED),
    "/opt/venv/share/doc.txt": (b"", CHANGED),
    f"{SITE}/evil.pth": (b"import evil", STRAY),
    f"{SITE}/pkg/_native.so": (b"", STRAY),
    f"{SITE}/pkg-1.0.dist-info/direct_url.json": (b"{}", STRAY),
    f"{SITE}/pkg/__pycache__/other.cpython-312.pyc": (b"", STRAY),
    f"{SITE}/pkg/__init__.pyc": (b"", STRAY),
    f"{SITE}/pkg/__pycache__/__init__.py": (b"", STRAY),
    f"{SITE}/pkg/rocblas/library/Kernels.so-000-gfx1100x.hsaco": (b"", STRAY),
    "/opt/venv/lib/python3.11/site-packages/pkg.py": (b"", STRAY),
    "/opt/venv/bin/sh": (b"", STRAY),
    "/opt/venv/python._pth": (b"", STRAY),
}


@pytest.mark.parametrize("path", TAMPERED)
def test_tampered_files_are_each_named(cell, tmp_path, path):
    content, what = TAMPERED[path]
    files = installed_files()
    mode = files.get(path, (b"", 0o644))[1]
    assert path in places(check(cell, tmp_path, files | {path: (content, mode)})).get(what, ())


@pytest.mark.parametrize("path", [p for p in installed_files() if p.startswith(SITE) and not p.endswith(".pyc")])
def test_missing_files_are_each_named(cell, tmp_path, path):
    files = installed_files()
    del files[path]
    assert path in places(check(cell, tmp_path, files))[MISSING]


def test_kernels_that_the_prune_stage_would_have_left_may_not_be_missing(cell, tmp_path):
    whole = cell.model_copy(update={"prune": False})
    assert places(check(whole, tmp_path))[MISSING] == {f"{SITE}/pkg/rocblas/library/Kernels.so-000-gfx906.hsaco"}


@pytest.mark.parametrize("mode", [0o755, 0o666, 0o4644, 0o600])
def test_another_mode_is_named(cell, tmp_path, mode):
    path = f"{SITE}/pkg/__init__.py"
    files = installed_files() | {path: (MEMBERS["pkg/__init__.py"], mode)}
    assert places(check(cell, tmp_path, files)) == {MODE: {f"{path} ({mode:o} 0:0)"}}


@pytest.mark.parametrize(
    ("name", "target", "what"),
    [
        ("bin/python3", "/usr/bin/perl", CHANGED),
        ("bin/python", "/tmp/python", CHANGED),
        ("lib64", "/tmp", CHANGED),
        ("lib64", None, MISSING),
        ("bin/ls", "/usr/bin/id", STRAY),
        ("lib/python3.12/site-packages/evil", "/tmp", STRAY),
        ("lib/python3.12/site-packages/extra.py", "/tmp", CHANGED),
    ],
)
def test_links_lead_where_venv_leads_them(cell, tmp_path, name, target, what):
    files = installed_files()
    files.pop(f"/opt/venv/{name}", None)
    assert f"/opt/venv/{name}" in places(check(cell, tmp_path, files, links={name: target}))[what]


def test_hard_link_counts_by_its_content(cell, tmp_path):
    files = installed_files()
    del files[f"{SITE}/pkg/__init__.py"]
    for target, expected in ((f"{SITE}/pkg/data.bin", True), ("/srv/same", False)):
        more = {"/srv/same": (MEMBERS["pkg/__init__.py"], 0o644)}
        found = check(cell, tmp_path, more | files, hard={f"{SITE}/pkg/__init__.py": target.lstrip("/")})
        assert (f"{SITE}/pkg/__init__.py" in places(found).get(CHANGED, ())) is expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pkg/__init__.py,sha256=", "pkg/__init__.py,sha256=A"),
        ("pkg/__init__.py,", "pkg/other.py,"),
        ("REQUESTED,", "REQUESTED2,"),
        (f"pkg/data.bin,sha256={digest(MEMBERS['pkg/data.bin'])},2\n", ""),
        ("pkg-1.0.dist-info/RECORD,,", "evil.pth,,\npkg-1.0.dist-info/RECORD,,"),
    ],
)
def test_record_that_was_rewritten_is_named(cell, tmp_path, old, new):
    path = f"{SITE}/pkg-1.0.dist-info/RECORD"
    files = installed_files()
    text = files[path][0].decode()
    assert old in text
    found = places(check(cell, tmp_path, files | {path: (text.replace(old, new, 1).encode(), 0o644)}))
    assert set(found) == {RECORDS}


@pytest.mark.parametrize(
    "line",
    ["include-system-site-packages = true", "home = /tmp", "version = 3.13.0", "executable = /tmp/python3.12", "x = y"],
)
def test_configuration_that_venv_does_not_write_fails(cell, tmp_path, line):
    name = line.partition(" = ")[0]
    kept = [old for old in CONFIGURATION.splitlines() if not old.startswith(f"{name} =")]
    text = "\n".join([*kept, line]).encode()
    found = check(cell, tmp_path, installed_files() | {environment.CONFIGURATION: (text, 0o644)})
    assert found.status == "failed"


def test_check_without_the_locked_wheels_fails(cell, tmp_path):
    (finding,) = check(cell, tmp_path / "elsewhere").findings
    assert finding.places[0] == "pkg-1.0-py3-none-any.whl (missing)"
    (tmp_path / "pkg-1.0-py3-none-any.whl").write_bytes(b"other")
    (finding,) = check(cell, tmp_path).findings
    assert finding.places[0] == "pkg-1.0-py3-none-any.whl (other bytes than the lock names)"


def test_hashes_stored_with_the_wheels_are_ignored(cell, tmp_path):
    """The wheelhouse keeps hashes of files that have not changed since; a proof hashes them itself."""
    path = tmp_path / "pkg-1.0-py3-none-any.whl"
    good = path.read_bytes()
    path.write_bytes(good + b"more")
    from rocmatrix.images import wheelhouse

    ledger = wheelhouse.Ledger(tmp_path)
    ledger.sha256(path)
    ledger._seen = dict.fromkeys(ledger._seen, hashlib.sha256(good).hexdigest())
    ledger.save()
    assert check(cell, tmp_path).status == "failed"


def test_unlocked_cell_has_nothing_to_compare_with(tmp_path):
    unlocked = next(cell for cell in cells.MATRIX.cells if cell.unlocked_because)
    assert check(unlocked, tmp_path).status == "failed"


def test_tree_without_an_environment_fails(cell, tmp_path):
    (finding,) = installed.check(Tree(), cell, tmp_path).findings
    assert finding.places == (environment.CONFIGURATION,)


def test_file_of_a_distribution_comes_from_its_own_wheel():
    """pip's commands are named by ensurepip, and nothing else of a bundled wheel is taken that is not installed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        about = "pip-24.0.dist-info"
        rows = {"pip/__init__.py": b"", f"{about}/WHEEL": b"", f"{about}/METADATA": b"Name: pip\n"}
        rows[f"{about}/entry_points.txt"] = b"[console_scripts]\npip = pip.main:main\npip3 = pip.main:main\n"
        for name, data in {**rows, f"{about}/RECORD": record(rows).encode()}.items():
            archive.writestr(name, data)
    tree = Tree()
    place = "/usr/share/python-wheels/pip-24.0-py3-none-any.whl"
    tree.texts[place] = buffer.getvalue()
    found = environment.Environment(python="3.12")
    assert environment.bundled(tree, found, locked=set()) == []
    tree.rows[f"{SITE}/pip-24.0.dist-info/METADATA"] = None
    (pip,) = environment.bundled(tree, found, locked=set())
    assert set(pip.commands) == {"pip", "pip3", "pip3.12"}
    assert set(pip.files) == {f"{SITE}/{name}" for name in rows}
    assert environment.bundled(tree, found, locked={"pip"}) == []


def test_wheel_that_pip_could_not_install_is_an_error(tmp_path):
    path = tmp_path / "bad-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bad/__init__.py", "")
    with pytest.raises(ValueError, match=r"no \.dist-info/WHEEL"):
        wheel.opened(path, name=path.name, site=SITE)


def test_rows_hold_owner_and_attributes(cell, tmp_path):
    tree = tree_of(installed_files(), links={f"/opt/venv/{k}": v for k, v in LINKS.items()})
    path = f"{SITE}/pkg/__init__.py"
    tree.rows[path] = replace(tree.rows[path], gid=7)
    assert places(installed.check(tree, cell, tmp_path)) == {MODE: {f"{path} (644 0:7)"}}
    tree.rows[path] = replace(tree.rows[path], gid=7, attributes=("security.capability",))
    assert places(installed.check(tree, cell, tmp_path)) == {MODE: {f"{path} (644 0:7 security.capability)"}}


def test_environments_own_folder_is_checked(cell, tmp_path):
    tree = tree_of(installed_files(), links={f"/opt/venv/{k}": v for k, v in LINKS.items()})
    tree.rows["/opt/venv"] = replace(tree.rows["/opt/venv"], uid=999)
    assert places(installed.check(tree, cell, tmp_path)) == {MODE: {"/opt/venv (755 999:0)"}}
