"""A tree collects entries by digest, and the text of the few that checks read."""

import hashlib
from contextlib import contextmanager
from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.verify.devicecode.filetree import Entry
from rocmatrix.verify.files.tree import CHUNK, LARGEST, Tree, parents

SETTINGS = "/opt/venv/pyvenv.cfg"


def entry(path, data=b"", **more):
    @contextmanager
    def content():
        yield BytesIO(data)

    known = {"kind": "file", "size": len(data), "mode": 0o644, "uid": 0, "modified": 0.0, "head": data[:64]} | more
    return Entry(path=path, open=content, **known)


def tree(*entries):
    made = Tree()
    made.look_all(entries)
    return made


def test_file_is_kept_by_the_digest_of_its_whole_content():
    data = b"ab" * CHUNK
    row = tree(entry("/usr/bin/a", data)).rows["/usr/bin/a"]
    assert row.sha256 == hashlib.sha256(data).digest()
    assert row.md5 == hashlib.md5(data).digest()


def test_environment_and_trainer_have_no_md5():
    rows = tree(entry("/opt/venv/a", b"a"), entry("/opt/rocmatrix/a", b"a"), entry("/opt/venvs", b"a")).rows
    assert [bool(row.md5) for row in rows.values()] == [False, False, True]


def test_further_name_of_a_hard_linked_file_has_the_digests_of_its_first():
    rows = tree(entry("/usr/a", b"a"), entry("/usr/b", link="/usr/a")).rows
    assert (rows["/usr/b"].sha256, rows["/usr/b"].md5) == (rows["/usr/a"].sha256, rows["/usr/a"].md5)
    assert (rows["/usr/b"].kind, rows["/usr/b"].link) == ("file", "")


def test_symbolic_link_and_folder_have_no_digest():
    rows = tree(entry("/usr/a", kind="folder"), entry("/usr/l", kind="link", link="a")).rows
    assert {row.sha256 + row.md5 for row in rows.values()} == {b""}
    assert rows["/usr/l"].link == "a"


def test_text_is_kept_of_named_files_of_bounded_size_alone():
    made = tree(entry(SETTINGS, b"x = 1"), entry("/opt/venv/other", b"x"), entry("/etc/passwd", b"y", size=LARGEST + 1))
    assert made.texts == {SETTINGS: b"x = 1"}


def test_lines_of_a_text_are_read_whatever_its_bytes():
    assert tree(entry(SETTINGS, b"a\xff\nb")).lines(SETTINGS) == ["a\ufffd", "b"]
    assert Tree().lines(SETTINGS) == []


def test_folder_holds_itself_and_what_is_below_it_alone():
    made = tree(*(entry(path, kind="folder") for path in ("/opt/venv", "/opt/venv/a", "/opt/venvs", "/opt")))
    assert list(made.below("/opt/venv")) == ["/opt/venv", "/opt/venv/a"]


NAMES = st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=4)


@given(st.lists(NAMES, max_size=4))
def test_parents_are_every_folder_between_top_and_path(names):
    found = parents({"/".join(["/opt/venv", *each]) for each in names}, "/opt/venv")
    assert found == {
        "/".join(["/opt/venv", *each[:length]]) for each in [[], *names] for length in range(len(each) or 1)
    }
