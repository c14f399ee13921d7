"""Files of other programs are answered with what they are; text that begins like one is read."""

from __future__ import annotations

import gzip
import io
import pickle
import sqlite3
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from trainer.data.readers.bars import Reading, open_source
from trainer.data.readers.forms.other_files import binary_file, folder_advice, is_binary, text_file
from trainer.data.readers.stream import kind_of
from trainer.runtime.errors import TrainerError


def arrow_stream() -> bytes:
    pl.DataFrame({"x": [1]}).write_ipc_stream(made := io.BytesIO())
    return made.getvalue()


def archived(name: str, kind: str) -> bytes:
    made = io.BytesIO()
    if kind == "tar":
        with tarfile.open(fileobj=made, mode="w:gz") as tar:
            tar.addfile(tarfile.TarInfo(name))
    else:
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr(name, b"\x93NUMPY\x01\x00" + bytes(99))
    return made.getvalue()


def database(folder: Path) -> bytes:
    with sqlite3.connect(folder / "made.db") as connection:
        connection.execute("create table t(a)")
    return (folder / "made.db").read_bytes()


def array() -> bytes:
    np.save(made := io.BytesIO(), np.zeros(3))
    return made.getvalue()


FILES: dict[str, tuple[bytes, str]] = {
    "SPSS": (b"$FL2@(#) SPSS DATA FILE" + bytes(99), "read_spss"),
    "Stata": (b"<stata_dta><header><release>118" + bytes(99), "read_stata"),
    "Stata of before": (b"\x72\x02\x01\x00" + bytes(99), "read_stata"),
    "SAS": (bytes(12) + b"\xc2\xea\x81\x60" + bytes(99), "read_sas"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(99), "read_hdf"),
    "pickle": (pickle.dumps({"a": [1.5]}), "can run any code"),
    "NumPy": (array(), "numpy.load"),
    "NumPy, packed": (archived("a.npy", "zip"), "numpy.load"),
    "R": (gzip.compress(b"X\n\x00\x00\x00\x03" + bytes(99)), "readRDS"),
    "MATLAB": (b"MATLAB 5.0 MAT-file, Platform" + bytes(99), "writetable"),
    "PDF": (b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n" + bytes(9), "where the PDF is from"),
    "tar": (archived("a.csv", "tar"), "tar xf"),
    "7z": (b"7z\xbc\xaf\x27\x1c" + bytes(99), "Unpack it"),
    "Sierra Chart": (b"SCID8\x00\x00\x00" + bytes(99), "Export Bar Data"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(99), "the table that the picture"),
    "old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "Save the sheet"),
    "Parquet, packed": (gzip.compress(b"PAR1" + bytes(99)), "Unpack it"),
    "Arrow stream": (arrow_stream(), "read_ipc_stream"),
    "JSON lines": (b'{"a": 1}\n{"a": 2}\n', "lines=True"),
    "unknown bytes": (b"\x01\x02\x03" + bytes(99), "as CSV"),
    "unknown bytes that are no text": (b"\x01\x02\xff\xfe\x80" * 40, "as CSV"),
}


@pytest.mark.parametrize("name", [*FILES, "SQLite"])
def test_file_of_another_program_is_refused_with_the_way_to_a_table(tmp_path: Path, name: str) -> None:
    content, words = (database(tmp_path), "sqlite3 -header -csv") if name == "SQLite" else FILES[name]
    (path := tmp_path / "given").write_bytes(content)
    with pytest.raises(TrainerError, match="RM510") as caught:
        open_source(path, Reading())
    assert words in caught.value.next


@pytest.mark.parametrize("head", [b"ORC,open\n", b"MZ;a\n", b"SCID,b\n", b"PAR1,2\n", "MZ,ö\n".encode("cp1252")[:2]])
def test_text_that_begins_with_the_letters_of_a_mark_is_text(head: bytes) -> None:
    assert binary_file(head) is None and text_file(head.decode()) is None


def test_letters_of_older_encodings_are_no_bytes_of_a_program() -> None:
    assert not is_binary("日付,始値\r\n\t".encode("cp932")) and is_binary(b"\x00")


def test_folder_of_files_is_refused_with_the_command_that_joins_them(tmp_path: Path) -> None:
    folder = tmp_path / "my months"
    folder.mkdir()
    for month in ("a", "b"):
        (folder / f"{month}.csv").write_text(f"x;y\n{month};1")
    with pytest.raises(TrainerError, match="RM510") as caught:
        kind_of(folder)
    assert caught.value.what == "it is a folder"
    assert "the folder has 2" in caught.value.next
    command = caught.value.next.partition("join them: ")[2]
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)  # as a person would copy it
    assert (tmp_path / "all.csv").read_text() == "x;y\na;1\nb;1\n"


def test_folder_with_one_file_or_without_any_is_refused_with_what_there_is(tmp_path: Path) -> None:
    assert folder_advice(tmp_path) == ""
    (tmp_path / "only.csv").write_text("x\n")
    assert folder_advice(tmp_path) == f"One file is read: --data {tmp_path / 'only.csv'}."


def test_folder_of_parquet_files_is_refused_with_what_joins_them(tmp_path: Path) -> None:
    (part := tmp_path / "day=1").mkdir()
    for name in ("a", "b"):
        pl.DataFrame({"x": [1]}).write_parquet(part / f"{name}.parquet")
    command = folder_advice(tmp_path).partition("polars: ")[2].removesuffix(".")
    eval(f"pl.{command.replace('all.parquet', str(tmp_path / 'all.parquet'))}")  # as a person would copy it
    assert len(pl.read_parquet(tmp_path / "all.parquet")) == 2


def test_folder_that_may_not_be_listed_is_refused_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "iterdir", closed)  # root, as which tests run, may list any
    with pytest.raises(TrainerError, match="RM510") as caught:
        kind_of(tmp_path)
    assert caught.value.what == "it is a folder"


def test_folder_that_is_removed_while_it_is_looked_at_gives_no_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def glob(self: Path, parts: str) -> Iterator[Path]:
        raise FileNotFoundError(parts)

    monkeypatch.setattr(Path, "glob", glob)
    assert folder_advice(tmp_path) == ""


@pytest.mark.parametrize(("place", "seen"), [("a", True), ("y=1/m=2", True), ("a/b", False), ("a/b/c", False)])
def test_parquet_files_are_looked_for_in_folders_and_their_parts_alone(tmp_path: Path, place: str, seen: bool) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "part.parquet").write_bytes(b"")
    assert bool(folder_advice(tmp_path)) is seen
