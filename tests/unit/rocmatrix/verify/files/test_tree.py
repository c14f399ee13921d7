"""A tree collects entries by digest, and the text of the few that checks read."""

import hashlib
from contextlib import contextmanager, nullcontext
from dataclasses import replace
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


def test_row_has_all_that_the_image_states_of_a_path():
    about = {"mode": 0o4750, "uid": 7, "gid": 8, "device": ("c", 1, 3), "attributes": ("security.capability",)}
    (row,) = tree(entry("/dev/null", kind="other", **about)).rows.values()
    assert {name: getattr(row, name) for name in about} == about
    assert (row.kind, row.sha256, row.md5, row.link) == ("other", b"", b"", "")


def test_link_to_a_file_has_no_digest_and_further_name_of_an_unknown_file_neither():
    rows = tree(entry("/usr/a", b"a"), entry("/usr/l", kind="link", link="/usr/a"), entry("/usr/b", link="/gone")).rows
    assert [(row.sha256, row.md5) for row in list(rows.values())[1:]] == [(b"", b"")] * 2


def test_text_of_the_largest_size_is_kept_whole_and_read_in_pieces():
    data, sizes = b"ab" * CHUNK, []

    class Pieces(BytesIO):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    whole = replace(entry(SETTINGS, size=LARGEST), open=lambda: nullcontext(Pieces(data)))
    assert tree(whole).texts == {SETTINGS: data}
    assert set(sizes) == {CHUNK}
