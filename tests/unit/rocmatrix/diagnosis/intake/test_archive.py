"""The logs of a zip archive, unpacked with their times; other files of it stay packed."""

import io
import zipfile

import pytest

from rocmatrix.diagnosis.intake import archive, folder
from rocmatrix.runtime.errors import RocmatrixError

FAILED = b"RuntimeError: HIP error: invalid device function\n"


def packed(*members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as held:
        for name, text, year in members:
            held.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), text)
    return data


def test_logs_are_unpacked_with_their_times_and_other_files_are_not(tmp_path):
    data = packed(("d/a.txt", b"a\n", 2026), ("../b.txt", b"b\n", 2025), ("c.bin", b"\0", 2024), ("e.txt", b"", 2024))
    archive.unpack(data, tmp_path, name="x")
    found = folder.logs(tmp_path)
    assert [found.name(path) for path in found.paths] == ["b.txt", "d/a.txt"]


def test_file_that_is_no_zip_or_not_there_is_none(tmp_path):
    (tmp_path / "a.log").write_bytes(FAILED)
    assert not any(archive.is_zip(tmp_path / name) for name in ("a.log", "b.log", ".", "c\0d"))
    (tmp_path / "e.zip").write_bytes(packed(("a.log", FAILED, 2026)).getvalue())
    assert archive.is_zip(tmp_path / "e.zip")


CUT = bytearray(packed(("a.log", FAILED * 50, 2026)).getvalue())
CUT[45:60] = b"\xff" * 15


@pytest.mark.parametrize(
    ("data", "code"),
    [(packed(("a.bin", b"x", 2026)), "RM610"), (io.BytesIO(b"PK\x03\x04rubbish"), "RM611"), (io.BytesIO(CUT), "RM611")],
)
def test_archive_without_a_log_or_that_is_not_sound_is_refused(data, code, tmp_path):
    with pytest.raises(RocmatrixError, match=code):
        archive.unpack(data, tmp_path, name="x")


def test_archive_that_unfolds_to_more_than_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MOST_BYTES", len(FAILED) - 1)
    with pytest.raises(RocmatrixError, match="RM610"):
        archive.unpack(packed(("a.log", FAILED, 2026)), tmp_path, name="x")
    assert not list(tmp_path.iterdir())


def test_log_whose_time_was_not_written_is_unpacked(tmp_path):
    data = bytearray(packed(("a.log", FAILED, 1980)).getvalue())
    for at in (data.index(b"PK\x03\x04") + 10, data.index(b"PK\x01\x02") + 12):
        data[at : at + 4] = bytes(4)
    archive.unpack(io.BytesIO(data), tmp_path, name="x")
    assert (tmp_path / "a.log").read_bytes() == FAILED
