"""A log that grows is read in whole lines, and from its start where it was rotated, cut or written over."""

import bz2
import codecs
import gzip
import lzma
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.diagnosis.intake.follow import Follower
from rocmatrix.runtime.errors import RocmatrixError


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    return path


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


@given(st.lists(st.binary(max_size=6).map(lambda data: data.replace(b"\0", b"\n")), max_size=6))
def test_pieces_of_a_text_are_its_whole_lines(tmp_path_factory, pieces):
    path = tmp_path_factory.mktemp("log") / "a.log"
    path.write_bytes(b"begin\n")
    follower = Follower(path)
    found = follower.read()
    for piece in pieces:
        append(path, piece)
        lines = follower.read()
        assert lines.endswith(b"\n") or not lines
        found += lines
    follower.close()
    assert found + follower.partial == path.read_bytes()
    assert follower.restarts == 0


@pytest.mark.parametrize("change", ["cut", "written over", "rotated"])
def test_other_text_under_the_name_is_read_from_its_start(log, change):
    follower = Follower(log)
    follower.read()
    if change == "rotated":
        log.rename(log.with_suffix(".1"))
    log.write_bytes(b"x\n" if change != "written over" else b"new text\n")
    assert follower.read() == log.read_bytes()
    assert follower.restarts == 1
    follower.close()


def test_name_that_is_gone_keeps_the_file_that_was_read(log):
    follower = Follower(log)
    follower.read()
    log.unlink()
    assert (follower.read(), follower.restarts) == (b"", 0)
    follower.close()


def test_wide_characters_are_read_as_narrow_ones(log):
    log.write_bytes("ä one\nt".encode("utf-16"))
    follower = Follower(log)
    assert follower.read() == "ä one\n".encode()
    assert follower.partial == b"t"
    follower.close()


def test_packed_file_and_folder_are_refused(log):
    log.write_bytes(gzip.compress(b"x"))
    for path in (log, log.parent):
        with pytest.raises(RocmatrixError) as refused:
            Follower(path)
        assert refused.value.code == "RM684"


@pytest.mark.parametrize("begin", [b"", b"\xff"])
def test_wide_characters_written_after_the_start_are_read_as_narrow_ones(log, begin):
    text = codecs.BOM_UTF16_LE + "ä one\n".encode("utf-16-le")
    log.write_bytes(begin)
    follower = Follower(log)
    assert (follower.read(), follower.partial) == (b"", b"")
    append(log, text[len(begin) :])
    assert (follower.read(), follower.restarts) == ("ä one\n".encode(), 0)
    follower.close()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_text_written_after_the_start_is_refused(log, pack):
    log.write_bytes(b"")
    follower = Follower(log)
    append(log, pack(b"x"))
    with pytest.raises(RocmatrixError, match="it is packed"):
        follower.read()
    follower.close()
    with pytest.raises(RocmatrixError, match="it is packed"):
        Follower(log)


@pytest.mark.parametrize("change", ["cut", "rotated"])
def test_half_line_comes_before_the_text_that_took_its_place(log, change):
    append(log, b"RuntimeError: hal")
    follower = Follower(log)
    assert follower.read() == b"one\n"
    if change == "rotated":
        log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new\n")
    assert (follower.read(), follower.restarts) == (b"RuntimeError: hal", 0)
    assert (follower.read(), follower.restarts) == (b"new\n", 1)
    follower.close()


def test_pipe_under_the_name_does_not_hang(log):
    follower = Follower(log)
    follower.read()
    log.unlink()
    os.mkfifo(log)
    assert (follower.read(), follower.restarts) == (b"", 0)
    follower.close()
    with pytest.raises(RocmatrixError, match="RM684"):
        Follower(log)
