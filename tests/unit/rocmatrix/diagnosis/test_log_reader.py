"""Any log can be read: packed, cut short, binary, empty, without an end of line, longer than memory allows."""

import bz2
import gzip
import io
import lzma
import os
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmatrix.diagnosis import log_reader
from rocmatrix.runtime.errors import RocmatrixError
from tests.unit.rocmatrix.diagnosis.known import best

LOG = b"step 1\nstep 2\nRuntimeError: HIP error: invalid device function\n"
FOUND = "hip-invalid-device-function"


def chunks(data, **options):
    return list(log_reader.chunks(io.BytesIO(data), name="a test", **options))


@given(data=st.binary(min_size=1, max_size=400), size=st.integers(min_value=1, max_value=50))
def test_chunks_hold_every_byte_and_only_the_last_may_lack_its_end_of_line(data, size):
    data = b"x" + data  # not the mark of a packed file
    found = chunks(data, size=size)
    assert b"".join(found) == data
    assert all(chunk.endswith(b"\n") for chunk in found[:-1])


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_packed_logs_are_unpacked(pack):
    assert best(pack(LOG)) == FOUND


def test_packed_log_that_breaks_off_counts_as_far_as_it_goes():
    whole = gzip.compress(LOG + bytes(range(256)) * 4000)
    assert best(whole[: len(whole) - 12]) == FOUND


def test_archive_that_cannot_be_unpacked_is_reported():
    with pytest.raises(RocmatrixError, match="RM611"):
        chunks(b"\x1f\x8b" + b"rubbish" * 10)
    with pytest.raises(RocmatrixError, match="RM611"):
        chunks(b"\x28\xb5\x2f\xfd" + b"rubbish" * 10)


def test_empty_log_is_reported():
    with pytest.raises(RocmatrixError, match="it is empty"):
        chunks(b"")


def test_folder_and_a_missing_file_are_reported(tmp_path):
    for path in (tmp_path, tmp_path / "none.log"):
        with pytest.raises(RocmatrixError, match="RM610"):
            log_reader.opened(path)


@settings(max_examples=30)
@given(before=st.binary(max_size=300), after=st.binary(max_size=300))
def test_bytes_of_any_kind_around_it_hide_nothing(before, after):
    assert best(b"log " + before + b"\n" + LOG + after) == FOUND


def test_line_without_end_is_cut_and_read():
    text = b"0" * (3 * log_reader.CHUNK) + LOG.replace(b"\n", b" ")
    assert best(text) == FOUND


def test_named_pipe_without_a_writer_is_empty_and_one_with_a_writer_is_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with log_reader.opened(pipe) as stream, pytest.raises(RocmatrixError, match="it is empty"):
        next(log_reader.chunks(stream, name="pipe"))
    with log_reader.opened(pipe) as stream:
        with pipe.open("wb") as writer:
            writer.write(b"one\n")
        assert list(log_reader.chunks(stream, name="pipe")) == [b"one\n"]


def test_log_that_the_system_cannot_read_is_rm610():
    with log_reader.opened(Path("/proc/self/mem")) as stream, pytest.raises(RocmatrixError, match="RM610"):
        list(log_reader.chunks(stream, name="a test"))


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"7z\xbc\xaf\x27\x1c", "7z"), (b"Rar!\x1a\x07\x01", "rar"), (b"LPKSHHRH", "journal"),
        (b"ElfFile\0", "Windows"),
        (b"\x7fELF\x02", "core dump"), (b"\x89PNG\r\n\x1a", "picture"), (b"\xff\xd8\xff\xe0", "picture"),
        (b"%PDF-1.7", "PDF"),
    ],
)  # fmt: skip
def test_file_of_another_kind_is_named_with_what_gives_its_text(head, what):
    with pytest.raises(RocmatrixError, match="RM611") as error:
        chunks(head + b"rest" * 10)
    assert what in str(error.value)


def test_line_that_is_too_long_is_cut_where_a_record_ends(monkeypatch):
    monkeypatch.setattr(log_reader, "LONGEST_LINE", 20)
    assert log_reader.whole(b"one\ntwo") == 4
    assert log_reader.whole(b'{"a": 1},{"b": 22}') == 0
    assert log_reader.whole(b'{"a": 1, "c": 3},{"b": 22') == 17
    assert log_reader.whole(b"x" * 21) == 21
    assert log_reader.whole(b"{},ValueError: no record ") == 25
