"""The text of a file, whatever wrote it."""

import os

import pytest

from rocmatrix.doctor.environment.shell import texts


def put(folder, name, held):
    (folder / name).write_bytes(held)
    return folder / name


@pytest.mark.parametrize(
    ("name", "held", "text"),
    [
        ("a.sh", b"\xef\xbb\xbfa\r\nb\rc\n", "a\nb\nc\n"),
        ("a.txt", "torch\r\n".encode("utf-16"), "torch\n"),
        ("a.sh", b"# caf\xe9\n", "# caf\xe9\n"),
        ("a.sh", "a\x0cb\u2028c\x85d\n".encode(), "a b c d\n"),
    ],
)
def test_text_has_plain_ends_of_lines_and_no_mark(tmp_path, name, held, text):
    assert texts.of_file(put(tmp_path, name, held)) == text


@pytest.mark.parametrize(
    ("name", "held", "why"),
    [
        ("Dockerfile", "FROM a\n".encode("utf-16"), "it is UTF-16"),
        ("a.yml", b"# caf\xe9\n", "codec can't decode"),
        ("a.sh", b"\x00\xe9\n", "codec can't decode"),
        ("a.sh", b"a" * (texts.LARGEST + 1), "more than"),
        ("a.txt", b"\xff\xfe\x00", "truncated"),
    ],
)
def test_file_that_is_no_text_for_its_reader_is_refused(tmp_path, name, held, why):
    with pytest.raises(ValueError, match=why):
        texts.of_file(put(tmp_path, name, held))


def test_rows_keep_the_ends_of_their_lines():
    text = "a\r\nb\x0cc\rd\n\ne"
    assert texts.rows(text) == ["a\r\n", "b\x0cc\r", "d\n", "\n", "e"]
    assert "".join(texts.rows(text)) == text


def test_pipe_without_a_writer_is_empty_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.sh")
    assert texts.of_file(tmp_path / "a.sh") == ""
