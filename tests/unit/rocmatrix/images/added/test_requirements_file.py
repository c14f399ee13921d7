"""Requirements files as people have them are read line by line, or refused with the place of the line."""

import codecs
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.images.added import requirements_file
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX


def write(tmp_path, text, name="requirements.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def requirements_of(path):
    return [line.name_and_bounds for line in requirements_file.read(path)]


def test_file_as_pip_takes_it_is_read(tmp_path):
    write(tmp_path, "numpy<3\n", "bounds.txt")
    write(tmp_path, "Rich>=13  # colours\n-c bounds.txt\n", "more.txt")
    path = write(
        tmp_path,
        "# a comment\n\n--require-hashes\nScikit_Learn == 1.5.* ; python_version>='3.9'\r\npeft[dev] \\\n  >=0.1\n"
        f"tqdm==4.1 \\\n    --hash=sha256:{'AB' * 32} \\\n    --hash=sha256:{'cd' * 32}\n-rmore.txt\n",
    )
    lines = requirements_file.read(path)
    assert [line.name_and_bounds for line in lines] == [
        "scikit-learn==1.5.*", "peft[dev]>=0.1", "tqdm==4.1", "rich>=13", "numpy<3",
    ]  # fmt: skip
    assert [line.where.rpartition(":")[2] for line in lines] == ["4", "5", "7", "1", "1"]
    assert lines[2].sha256 == ("ab" * 32, "cd" * 32)
    assert [line.only_bounds for line in lines] == [False] * 4 + [True]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_file_with_a_byte_order_mark_is_read(tmp_path, encoding):
    data = "tqdm==4.70.1\r\nrich\r\n".encode(encoding)
    assert data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    assert requirements_of(write(tmp_path, data)) == ["tqdm==4.70.1", "rich"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--extra-index-url https://download.example/whl/cu121", "--extra-index-url names where packages come from"),
        ("-i https://mirror.example/simple", "-i names where packages come from"),
        ("-e .", "-e is not taken"),
        ("--pre", "--pre is not taken"),
        ("git+https://git.example/x.git", "in no package index"),
        ("peft @ git+https://git.example/peft", "in no package index"),
        ("./wheels/x.whl", "in no package index"),
        ("numpy=1.26", "is no requirement"),
        ("tqdm>=4 extra words", "is no requirement"),
    ],
)
def test_line_that_an_image_cannot_hold_is_rm017_with_its_place(tmp_path, line, words):
    path = write(tmp_path, f"rich\n{line}\n")
    with pytest.raises(RocmatrixError) as refused:
        requirements_file.read(path)
    assert refused.value.code == "RM017"
    assert refused.value.where == f"{path}:2"
    assert words in refused.value.why


@pytest.mark.parametrize("text", ["", "# nothing\n", "-c itself.txt\n", b"\xff\xfe\xff"])
def test_file_without_packages_is_rm017(tmp_path, text):
    write(tmp_path, "numpy\n", "itself.txt")
    with pytest.raises(RocmatrixError, match="RM017"):
        requirements_file.take(write(tmp_path, text), tmp_path)


def test_pipe_without_a_writer_is_rm017_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "requirements.txt")
    with pytest.raises(RocmatrixError, match="RM017"):
        requirements_file.take(tmp_path / "requirements.txt", tmp_path)


def test_file_that_names_itself_is_rm017(tmp_path):
    write(tmp_path, "-r requirements.txt\n", "other.txt")
    with pytest.raises(RocmatrixError, match="names itself"):
        requirements_file.read(write(tmp_path, "-r other.txt\n"))


@given(st.permutations(["rich>=13", "tqdm", "peft[a,b]>=0.1", "six==1.16; python_version<'4'"]), st.booleans())
def test_name_depends_on_what_is_requested_alone(tmp_path_factory, lines, spaced):
    folder = tmp_path_factory.mktemp("lines")
    text = "\n".join(f"  {line}   # why" if spaced else line.replace("peft[a,b]", "PEFT[b,a]") for line in lines)
    word = requirements_file.take(write(folder, text), folder)
    assert requirements_file.is_word(word)
    assert word == "file-c2d42b9f3220"
    assert sorted(line.kept for line in requirements_file.kept(word, folder)) == sorted(
        line.kept for line in requirements_file.read(write(folder, text))
    )


def test_lines_that_are_not_kept_here_or_were_changed_are_rm017(tmp_path):
    with pytest.raises(RocmatrixError, match=r"RM017[\s\S]*--with-requirements FILE"):
        requirements_file.kept("file-000000000000", tmp_path)
    word = requirements_file.take(write(tmp_path, "rich\n"), tmp_path)
    (tmp_path / requirements_file.FOLDER / f"{word}.txt").write_text("torch==2.0\n")
    with pytest.raises(RocmatrixError, match="changed after its name was made"):
        requirements_file.kept(word, tmp_path)


def test_word_is_a_part_of_a_cells_name():
    name = "rocm7.2-torch2.12.1-gfx1100-with-file-0123456789ab-peft"
    assert MATRIX.cell(name).companions == ("file-0123456789ab", "peft")
    with pytest.raises(RocmatrixError, match="RM010"):
        MATRIX.cell(name.replace("ab-", "-"))
