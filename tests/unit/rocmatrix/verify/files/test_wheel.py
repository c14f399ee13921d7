"""What pip makes of a wheel: held to pip itself, and each rule by itself. The wheels are SYNTHETIC."""

import base64
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rocmatrix.verify.files import wheel
from rocmatrix.verify.files.tree import Row

SITE = "/opt/venv/lib/python3.12/site-packages"
ABOUT = "some_pkg-1.0.dist-info"
METADATA = b"Metadata-Version: 2.1\nName: some-pkg\nVersion: 1.0\n"
WHEEL = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
COMMANDS = b"[console_scripts]\nrun = some_pkg:main\n"
# Each member with its mode, 0 where its maker wrote none.
MEMBERS = {
    "some_pkg/_vendor/other-2.dist-info/WHEEL": (b"Wheel-Version: 1.0\n", 0),
    "some_pkg/__init__.py": (b"", 0o100644),
    "some_pkg/tool.sh": (b"#!python\n", 0o100711),
    "some_pkg/group.sh": (b"", 0o100610),
    "some_pkg/others.sh": (b"", 0o100601),
    "some_pkg/RECORD": (b"no record", 0o100644),
    "some_pkg-1.0.data/scripts/plain": (b"#!python\nprint(1)\n", 0o100644),
    "some_pkg-1.0.data/scripts/flag": (b"#!python -s\nprint('#!python')\n", 0o100755),
    "some_pkg-1.0.data/scripts/windows": (b"#!pythonw\r\nprint(1)\n", 0o100755),
    "some_pkg-1.0.data/scripts/shell": (b"#!/bin/sh\n", 0o100755),
    "some_pkg-1.0.data/scripts/run": (b"#!python\nold wrapper\n", 0o100755),
    "some_pkg-1.0.data/scripts/run-script.py": (b"#!python\nold wrapper\n", 0o100755),
    "some_pkg-1.0.data/headers/a.h": (b"h", 0o100644),
    "some_pkg-1.0.data/platlib/b.py": (b"b", 0o100644),
    "some_pkg-1.0.data/purelib/c.py": (b"c", 0o100644),
    "some_pkg-1.0.data/data/share/d.txt": (b"d", 0o100644),
    f"{ABOUT}/METADATA": (METADATA, 0o100644),
    f"{ABOUT}/WHEEL": (WHEEL, 0o100644),
    f"{ABOUT}/entry_points.txt": (COMMANDS, 0o100644),
}


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def written(members, *, record=None, name="some_pkg-1.0-py3-none-any.whl", folder=None):
    """Return a wheel of these members, as bytes, or as a file in `folder`."""
    lines = [f"{path},sha256={digest(content)},{len(content)}" for path, (content, _) in members.items()]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, (content, mode) in members.items():
            info = zipfile.ZipInfo(path)
            info.external_attr = mode << 16
            archive.writestr(info, content)
        text = record if record is not None else "\n".join([*lines, f"{ABOUT}/RECORD,,", ""])
        archive.writestr(f"{ABOUT}/RECORD", text)
    if folder is not None:
        (folder / name).write_bytes(buffer.getvalue())
        return folder / name
    return buffer


def opened(members=MEMBERS, *, site=SITE, **more):
    return wheel.opened(written(members, **more), name="some_pkg-1.0-py3-none-any.whl", site=site)


def test_expected_files_of_a_wheel_are_those_that_pip_installs(tmp_path, monkeypatch):
    prefix = tmp_path / "prefix"
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    argv += ["--disable-pip-version-check", "--no-warn-script-location", "--ignore-installed", "--prefix", prefix]
    subprocess.run([*argv, written(MEMBERS, folder=tmp_path)], check=True, capture_output=True)
    monkeypatch.setattr(wheel, "VENV", str(prefix))
    monkeypatch.setattr(wheel, "INTERPRETER", sys.executable)
    (record,) = prefix.rglob("some_pkg-1.0.dist-info/RECORD")
    found = opened(site=str(record.parent.parent))
    files = {str(path): path for path in prefix.rglob("*") if path.is_file()}
    left = {*found.added, found.record, f"{prefix}/bin/run", f"{found.about}/direct_url.json"}
    headers = {path for path in found.files if "/include/" in path}  # pip puts them elsewhere outside an environment
    assert files.keys() - left - {path for path in files if path.endswith("/a.h")} == found.files.keys() - headers
    for path in found.files.keys() - headers:
        content, mode = files[path].read_bytes(), files[path].stat().st_mode & 0o777
        row = Row(kind="file", mode=mode, uid=0, gid=0, sha256=hashlib.sha256(content).digest())
        assert found.files[path].is_installed_as(row), path
        assert found.files[path].mode == mode, path
    names = {name for name, _ in wheel.recorded(record.read_text())}
    assert {path.removeprefix(f"{record.parent.parent}/") for path in found.replaced} <= names
    assert all(Path(path).read_bytes() == content for path, content in found.added.items())


def test_members_land_where_their_scheme_has_them():
    found = opened()
    assert found.file == "some_pkg-1.0-py3-none-any.whl"
    assert found.about == f"{SITE}/{ABOUT}"
    assert found.record == f"{SITE}/{ABOUT}/RECORD"
    assert found.added == {f"{SITE}/{ABOUT}/INSTALLER": b"pip\n", f"{SITE}/{ABOUT}/REQUESTED": b""}
    own = {f"{SITE}/{name}" for name in MEMBERS if ".data/" not in name}
    scripts = {f"/opt/venv/bin/{name}" for name in ("plain", "flag", "windows", "shell")}
    headers = {"/opt/venv/include/site/python3.12/some_pkg/a.h"}
    assert found.files.keys() == {
        *own, *scripts, *headers, f"{SITE}/b.py", f"{SITE}/c.py", "/opt/venv/share/d.txt",
    }  # fmt: skip
    assert found.commands == {"run": "some_pkg:main"}
    assert found.replaced == {f"{SITE}/some_pkg-1.0.data/scripts/{name}" for name in ("run", "run-script.py")}


@pytest.mark.parametrize(
    ("name", "wrapper"),
    [
        ("p.data/scripts/run", True),
        ("p.data/scripts/run.exe", True),
        ("p.data/scripts/run.EXE", True),
        ("p.data/scripts/run-script.py", True),
        ("p.data/scripts/run.pya", True),
        ("p.data/scripts/a/run", True),
        ("p.data/scripts/run.py", False),
        ("p.data/scripts/runner", False),
        ("p.data/data/run", False),
        ("p.data/scriptsx/run", False),
        ("p/scripts/run", False),
        ("p/p.data/scripts/run", False),
    ],
)
def test_script_that_a_command_replaces_is_known_by_its_name(name, wrapper):
    assert wheel._is_wrapper(name, {"run": "m:f"}) is wrapper


def row(content, *, kind="file"):
    return Row(kind=kind, mode=0o644, uid=0, gid=0, sha256=hashlib.sha256(content).digest())


def test_file_is_as_the_wheel_holds_it_or_as_its_record_states_it():
    lines = [
        f"some_pkg/__init__.py,sha256={digest(b'as recorded')},",
        f"some_pkg-1.0.data/scripts/plain,sha256={digest(b'x')},",
    ]
    found = opened(record="\n".join(lines))
    init = found.files[f"{SITE}/some_pkg/__init__.py"]
    assert init.is_installed_as(row(b""))
    assert init.is_installed_as(row(b"as recorded"))
    assert not init.is_installed_as(row(b"other"))
    assert not init.is_installed_as(row(b"", kind="link"))
    script = found.files["/opt/venv/bin/plain"]
    assert script.is_installed_as(row(b"#!/opt/venv/bin/python\nprint(1)\n"))
    assert not script.is_installed_as(row(b"x"))
    assert not script.is_installed_as(row(MEMBERS["some_pkg-1.0.data/scripts/plain"][0]))
    tool = found.files[f"{SITE}/some_pkg/tool.sh"]
    assert tool.is_installed_as(row(b"#!python\n"))  # no script
    assert not tool.is_installed_as(Row(kind="file", mode=0o644, uid=0, gid=0))
    shell = found.files["/opt/venv/bin/shell"]
    assert (shell.sha256, shell.script) == (None, False)


def test_record_of_a_wheel_gives_each_member_its_digest():
    found = opened()
    for path, member in found.files.items():
        content, _ = MEMBERS[member.name]
        assert member.sha256 == (None if member.script else hashlib.sha256(content).digest()), path
    assert {path for path, member in found.files.items() if member.script} == {
        "/opt/venv/bin/plain", "/opt/venv/bin/flag", "/opt/venv/bin/windows",
    }  # fmt: skip


def test_large_member_is_read_in_pieces(monkeypatch):
    monkeypatch.setattr(wheel, "CHUNK", 7)
    content = bytes(range(100))
    found = opened(MEMBERS | {"some_pkg/large": (content, 0o100644)}, record="")
    sizes = []
    member = found.files[f"{SITE}/some_pkg/large"]
    whole = member.archive.open

    class Counting:
        def __init__(self, name):
            self.file = whole(name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def read(self, size=-1):
            sizes.append(size)
            return self.file.read(size)

    monkeypatch.setattr(member.archive, "open", Counting)
    assert member.is_installed_as(row(content))
    assert set(sizes) == {7}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", []),
        ("\n,sha256=x,1\na\n", [("a", None)]),
        ("a,,\n", [("a", None)]),
        ("a,md5=abc,3\n", [("a", None)]),
        ("a,sha256\n", [("a", b"")]),
        (f"a,sha256={digest(b'x')}\n", [("a", hashlib.sha256(b"x").digest())]),
        (f"a,sha256={digest(b'x')}=,1\n", [("a", hashlib.sha256(b"x").digest())]),
        ("a,sha256=AAAA,1\n", [("a", b"")]),
        ("a,sha256=A,1\n", [("a", b"")]),
        ("a,sha256=\u00e9,1\n", [("a", b"")]),
        ('"a,b",sha256=,1\n', [("a,b", b"")]),
    ],
)
def test_rows_of_a_record_are_read_one_by_one(text, rows):
    assert list(wheel.recorded(text)) == rows


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        (b"", {}),
        (b"[other]\nx = y:z\n", {}),
        (b"[console_scripts]\nRun = a:b [extra]\n[gui_scripts]\nshow = c:d.e\n", {"Run": "a:b", "show": "c:d.e"}),
        (b"[console_scripts]\na = m:f\na = m:g\n", {"a": "m:g"}),
        (b"[console_scripts]\na = m:f%x\n", {"a": "m:f%x"}),
        (b"[console_scripts]\na:b = m:f\n", {"a:b": "m:f"}),
    ],
)
def test_commands_are_the_entry_points_for_the_shell(text, commands):
    assert opened(MEMBERS | {f"{ABOUT}/entry_points.txt": (text, 0)}).commands == commands


def test_wheel_without_entry_points_has_no_commands_and_replaces_nothing():
    members = {name: member for name, member in MEMBERS.items() if not name.endswith("entry_points.txt")}
    found = opened(members)
    assert (found.commands, found.replaced) == ({}, frozenset())
    assert "/opt/venv/bin/run" in found.files


def test_wheel_in_which_only_a_carried_package_has_its_folder_is_none():
    members = {name: member for name, member in MEMBERS.items() if name != f"{ABOUT}/WHEEL"}
    with pytest.raises(ValueError, match=r"some_pkg-1\.0-py3-none-any\.whl has no \.dist-info/WHEEL"):
        opened(members)


def test_member_of_an_unknown_scheme_is_an_error():
    with pytest.raises(KeyError, match="elsewhere"):
        opened(MEMBERS | {"some_pkg-1.0.data/elsewhere/x": (b"", 0)})


def test_folders_and_signatures_are_not_installed():
    more = {"some_pkg/empty/": (b"", 0o040755), f"{ABOUT}/RECORD.jws": (b"", 0), f"{ABOUT}/RECORD.p7s": (b"", 0)}
    assert opened(more | MEMBERS).files.keys() == opened().files.keys()
