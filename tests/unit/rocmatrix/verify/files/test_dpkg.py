"""What packages list explains a path, and nothing else does."""

import hashlib
from dataclasses import replace

import pytest

from rocmatrix.verify.files import dpkg
from rocmatrix.verify.files.dpkg import Packages, merged
from rocmatrix.verify.files.tree import Row, Tree


def row(data=b"", **more):
    known = {"kind": "file", "mode": 0o644, "uid": 0, "gid": 0} | more
    if known["kind"] != "file":
        return Row(**known)
    return Row(sha256=hashlib.sha256(data).digest(), md5=hashlib.md5(data).digest(), **known)


def test_paths_count_as_on_a_system_whose_folders_were_merged():
    assert (merged("/bin/su"), merged("/lib64/ld.so")) == ("/usr/bin/su", "/usr/lib64/ld.so")
    assert (merged("/usr/bin/su"), merged("/library")) == ("/usr/bin/su", "/library")


def test_text_that_is_no_digest_explains_nothing():
    made = Tree()
    made.texts["/var/lib/dpkg/info/x.md5sums"] = b"  usr/bin/x\nz  usr/bin/y\n"
    packages = Packages(made)
    assert not packages.explain("/usr/bin/x", replace(row(b"x"), md5=b"x"), {}, written={})


MD5 = hashlib.md5(b"x").hexdigest()


def packages(**texts):
    made = Tree()
    made.texts = {
        "/var/lib/dpkg/info/a.list": b"/.\n/bin\n/bin/a\n/usr/lib/l\n/usr/lib/f\n/usr/lib/\xff\n",
        "/var/lib/dpkg/info/a.md5sums": f"{MD5}  bin/a\n{MD5}  usr/lib/a  b\n{MD5}  X11/a\nno digest\n".encode(),
        "/var/lib/dpkg/info/b.md5sums": f"{hashlib.md5(b'y').hexdigest()}  bin/a\n{'0' * 31}  usr/lib/short\n".encode(),
        "/var/lib/dpkg/status": f"Conffiles:\n /etc/c {MD5}\n /etc/o {MD5} obsolete\n/etc/n {MD5}\n".encode(),
        "/var/lib/dpkg/other.list": b"/usr/lib/other\n",
        "/other/a.md5sums": f"{MD5}  usr/lib/other\n".encode(),
    } | {f"/{name}": text for name, text in texts.items()}
    return Packages(made)


def test_lists_digests_and_configuration_files_of_packages_are_read():
    found = packages()
    assert found.listed == {"/.", "/usr/bin", "/usr/bin/a", "/usr/lib/l", "/usr/lib/f", "/usr/lib/\ufffd"}
    x, y = (hashlib.md5(data).digest() for data in (b"x", b"y"))
    assert found.md5 == {
        "/usr/bin/a": {x, y},
        "/usr/lib/a  b": {x},
        "/X11/a": {x},
        "/usr/lib/short": {b""},
        "/etc/c": {x},
        "/etc/o": {x},
    }


WRITTEN = {"file": ("/var/lib/dpkg/.+",), "link": ("/etc/alternatives/.+",)}


@pytest.mark.parametrize(
    ("path", "found", "explained"),
    [
        ("/bin/a", row(b"x"), True),
        ("/usr/bin/a", row(b"y"), True),
        ("/usr/bin/a", row(b"z"), False),
        ("/usr/lib/f", row(b"x"), False),  # listed, and of no digest
        ("/etc/c", row(b"x"), True),
        ("/var/lib/dpkg/status", row(b"?"), True),
        ("/etc/alternatives/x", row(b"?"), False),  # links alone are written there
        ("/x/var/lib/dpkg/status", row(b"?"), False),
        ("/usr/lib/l", row(kind="link", link="l2"), True),
        ("/lib/l", row(kind="link", link="l2"), True),
        ("/usr/lib/l", row(kind="link", link="/tmp/x"), False),
        ("/usr/lib/l", row(kind="link", link="../../tmp"), False),
        ("/usr/lib/l", row(kind="link", link="/proc/self/cwd/x"), False),
        ("/usr/lib/l", row(kind="link", link="/tmpfiles"), True),
        ("/bin/a", row(kind="link", link="b"), False),  # a file in the lists
        ("/usr/lib/none", row(kind="link", link="b"), False),
        ("/etc/alternatives/x", row(kind="link", link="/usr/bin/x"), True),
        ("/etc/alternatives/x", row(kind="link", link="/home/x"), False),
        ("/bin/vi", row(kind="link", link="/etc/alternatives/vi"), True),
        ("/usr/share/man/man1/vi.1", row(kind="link", link="/etc/alternatives/vi"), True),
        ("/usr/bin/vi", row(kind="link", link="/etc/alternatives/gone"), False),
        ("/usr/bin/vi", row(kind="link", link="/usr/bin/vim"), False),
        ("/usr/lib/vi", row(kind="link", link="/etc/alternatives/vi"), False),
        ("/dev/null", row(kind="other", mode=0o666, device=("c", 1, 3)), True),
        ("/dev/null", row(kind="other", mode=0o644, device=("c", 1, 3)), False),
        ("/dev/null", row(kind="other", mode=0o666, device=("c", 1, 5)), False),
        ("/dev/null", row(kind="other", mode=0o666), False),
        ("/dev/sda", row(kind="other", mode=0o666, device=("b", 8, 0)), False),
        ("/usr/lib/l", row(kind="folder"), True),
        ("/bin/a", row(kind="folder"), False),
    ],
)
def test_path_is_explained_by_its_kind_its_bytes_and_where_it_leads(path, found, explained):
    rows = {"/etc/alternatives/vi": row(kind="link", link="/usr/bin/vim"), "/usr/bin/vim": row(b"vim")}
    assert packages().explain(path, found, rows, written=WRITTEN) is explained


@pytest.mark.parametrize(
    ("path", "source", "explained"),
    [
        ("/usr/lib/python3/__pycache__/a.cpython-312.pyc", ("/usr/lib/python3/a.py", b"x"), True),
        ("/usr/share/python3/d/__pycache__/a.cpython-39.pyc", ("/usr/share/python3/d/a.py", b"x"), True),
        ("/usr/lib/python3/__pycache__/a.cpython-312.pyc", ("/usr/lib/python3/a.py", b"other"), False),
        ("/usr/lib/python3/__pycache__/a.cpython-312.pyc", ("/usr/lib/python3/b.py", b"x"), False),
        ("/usr/lib/ruby/__pycache__/a.cpython-312.pyc", ("/usr/lib/ruby/a.py", b"x"), False),
        ("/usr/lib/python3/__pycache__/a.cpython-27.pyc", ("/usr/lib/python3/a.py", b"x"), False),
        ("/usr/lib/python3/__pycache__/a.pypy.pyc", ("/usr/lib/python3/a.py", b"x"), False),
    ],
)
def test_byte_code_is_explained_by_a_source_of_a_package(path, source, explained):
    at, data = source
    sums = f"{MD5}  {at[1:]}\n".encode()
    found = packages(**{"var/lib/dpkg/info/p.md5sums": sums})
    assert found.explain(path, row(b"code"), {at: row(data)}, written={}) is explained


def test_folders_that_volumes_users_or_processes_fill_are_outside():
    inside = ("/usr/lib/x", "/homes", "/var/lib", "/dev/null", "/proc/self/fd/1", "/cached", "/optional")
    outside = (
        "/cache", "/training/x", "/tmp/x", "/var/tmp", "/home/a", "/root", "/opt/venv", "/mnt", "/media/x", "/srv",
        "/dev/shm/x", "/proc/1/root/x", "/proc/self/task", "//tmp",
    )  # fmt: skip
    assert not any(dpkg._leads_out("/usr/lib/l", row(kind="link", link=link)) for link in inside)
    assert all(dpkg._leads_out("/usr/lib/l", row(kind="link", link=link)) for link in outside)
    assert not dpkg._leads_out("/opt/l", row(kind="link", link="../usr"))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/bin", "/usr/bin"),
        ("/sbin/x", "/usr/sbin/x"),
        ("/lib/x", "/usr/lib/x"),
        ("/lib32/x", "/usr/lib32/x"),
        ("/libx32/x", "/usr/libx32/x"),
        ("/x/bin", "/x/bin"),
    ],
)
def test_path_is_merged_below_usr(path, found):
    assert merged(path) == found
