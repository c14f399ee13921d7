"""The same tree on disk and as a tar stream gives the same entries, each readable while it is at hand."""

import io
import os
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.verify.devicecode.filetree import IN_MEMORY, Chunks, in_tar, on_disk
from tests.fixtures import trees

FILES = {"a/one": b"1", "a/two": b"2" * 5000, "empty": b"", "large": bytes(IN_MEMORY + 10)}


def contents(entries):
    seen = {}
    for entry in entries:
        if entry.kind == "file":
            with entry.open() as file:
                file.seek(0, os.SEEK_END)
                assert file.tell() == entry.size
                file.seek(0)
                seen[entry.path] = file.read()
            assert entry.head == seen[entry.path][:64]
    return seen


def test_disk_and_stream_agree(tmp_path):
    trees.write(tmp_path, FILES)
    expected = {f"/{path}": data for path, data in FILES.items()}
    assert contents(on_disk(tmp_path)) == expected
    assert contents(in_tar(io.BytesIO(trees.tar(FILES)))) == expected


def test_entries_may_be_left_unread(tmp_path):
    stream = io.BytesIO(trees.tar(FILES))
    assert [entry.path for entry in in_tar(stream)] == [f"/{path}" for path in FILES]


def test_further_names_of_a_file_count_once(tmp_path):
    trees.write(tmp_path, {"one": b"12345"})
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    (tmp_path / "link").symlink_to("one")
    assert {e.path: (e.kind, e.size) for e in on_disk(tmp_path)} == {
        "/one": ("file", 5),
        "/two": ("file", 0),
        "/link": ("link", 0),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(tmp_path, arcname=".")
    buffer.seek(0)
    assert sum(entry.size for entry in in_tar(buffer)) == 5


def test_folders_and_nodes_have_their_kind():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (("dir/", tarfile.DIRTYPE), ("dev/null", tarfile.CHRTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.uid = kind, 0o1777, 7
            archive.addfile(member)
    buffer.seek(0)
    assert [(e.path, e.kind, e.mode, e.uid, e.size) for e in in_tar(buffer)] == [
        ("/dir", "folder", 0o1777, 7, 0),
        ("/dev/null", "other", 0o1777, 7, 0),
    ]


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 50))
def test_pieces_are_read_as_one(pieces, size):
    file = io.BufferedReader(Chunks(pieces), 16)
    read = b""
    while block := file.read(size):
        read += block
    assert read == b"".join(pieces)


def test_cut_stream_is_an_error():
    with pytest.raises(tarfile.TarError):
        list(in_tar(io.BytesIO(trees.tar(FILES)[:2000])))
