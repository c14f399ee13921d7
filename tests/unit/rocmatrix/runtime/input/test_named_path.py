"""Paths as a person types them end in a path or in a code; a pipe is never waited for."""

import os
from pathlib import Path

import pytest

from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import expanded, opened


def test_home_folder_stands_for_its_sign(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/a") == tmp_path / "a"
    assert expanded("a/~b") == Path("a/~b")


def test_home_of_an_unknown_user_is_refused_with_a_next_step():
    with pytest.raises(RocmatrixError, match=r"RM404[\s\S]*~nosuchuser/x[\s\S]*hint:"):
        expanded("~nosuchuser/x")


def test_pipe_without_a_writer_is_empty(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with opened(tmp_path / "pipe") as stream:
        assert stream.read() == b""


def test_pipe_with_a_writer_is_read_to_its_end():
    reading, writing = os.pipe()
    os.write(writing, b"a line\n")
    os.close(writing)
    with opened(Path(f"/dev/fd/{reading}")) as stream:
        assert stream.read() == b"a line\n"
    os.close(reading)
