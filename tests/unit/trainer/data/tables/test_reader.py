from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import polars as pl
import pytest

from trainer.data.tables.encoding import parse_cells
from trainer.data.tables.reader import Cells, read_cells
from trainer.runtime.errors import TrainerError


def csv(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text.encode())
    return path


def rows(cells: Cells) -> list[tuple[object, ...]]:
    return list(zip(*(cells.column(name).to_list() for name in cells.types), strict=True))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_and_line_ends(tmp_path: Path, separator: str, end: str) -> None:
    lines = ["a,b", "1,x", "2,y"]
    cells = read_cells(csv(tmp_path, end.join(line.replace(",", separator) for line in lines)))
    assert rows(cells) == [("1", "x"), ("2", "y")]
    assert cells.line.tolist() == [2, 3]
    assert cells.read["separator"] == separator


def test_quotes_may_hold_separators_and_line_ends_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    cells = read_cells(csv(tmp_path, 'a,b\n"1,\n5",x\n\n2,"y ""z"""\n'))
    assert rows(cells) == [("1,\n5", "x"), ("2", 'y "z"')]
    assert cells.line.tolist() == [3, 5]  # the line on which each row ends


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        (r'"H. \"Barney\" Ewell",1', 'H. "Barney" Ewell'),  # as Spark and MySQL write it
        (r'"a \"b\"",1', 'a "b"'),
        (r'"a \"b\", c",1', 'a "b", c'),
        (r'"\"a\"",1', '"a"'),
        (r'"C:\dir\",1', "C:\\dir\\"),
        (r""""{""a"": ""x\""y""}",1""", r"""{"a": "x\"y"}"""),
        (r'"say \""",1', r"say \""),
    ],
)
def test_quotes_within_a_cell_are_read_as_programs_write_them(tmp_path: Path, line: str, cell: str) -> None:
    assert rows(read_cells(csv(tmp_path, f"name,n\n{line}\n"))) == [(cell, "1")]


def test_row_whose_quotes_stay_open_is_named_by_its_first_line(tmp_path: Path) -> None:
    with pytest.raises(TrainerError) as caught:
        read_cells(csv(tmp_path, '# made\na,b\n1,x\n2,"y\n3,z\n4,z\n'))
    assert caught.value.where.endswith("line 4")
    assert "opens a cell there" in caught.value.next


def test_empty_cells_behind_the_last_column_are_none(tmp_path: Path) -> None:
    cells = read_cells(csv(tmp_path, "a,b\n1,x,\n2,y, ,\n3,z\n"))
    assert rows(cells) == [("1", "x"), ("2", "y"), ("3", "z")]


@pytest.mark.parametrize(("first", "named"), [("1,5,x", True), ("5,x\n2,6,y", False)])
def test_rows_of_one_cell_more_from_the_first_on_have_names(tmp_path: Path, first: str, named: bool) -> None:
    with pytest.raises(TrainerError) as caught:
        read_cells(csv(tmp_path, f"a,b\n{first}\n"))
    assert ("write.table" in caught.value.next) == named


def test_numbers_that_stand_twice_as_names_are_no_header(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="have the same name: '0'") as caught:
        read_cells(csv(tmp_path, "0,0,5,13\n1,2,3,4\n"))
    assert "looks like a row" in caught.value.next


def test_names_that_stand_twice_get_a_number(tmp_path: Path) -> None:
    cells = read_cells(csv(tmp_path, "a,b,a,a,a (2)\n1,2,3,4,5\n"))
    assert [*cells.types] == ["a", "b", "a (3)", "a (4)", "a (2)"]
    assert [cells.column(name).to_list() for name in cells.types] == [["1"], ["2"], ["3"], ["4"], ["5"]]
    assert cells.read["numbered_names"] == ["a (3)", "a (4)"]
    assert "numbered_names" not in read_cells(csv(tmp_path, "a,b\n1,2\n")).read


def test_chunks_change_nothing(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b\n" + "".join(f"{n},{n * n}\n" for n in range(100)))
    whole = read_cells(path)
    for cut in (read_cells(path, chunk=7), read_cells(path, chunk=7, folder=tmp_path)):
        assert rows(whole) == rows(cut)
        assert whole.line.tolist() == cut.line.tolist() == list(range(2, 102))
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_csv_parquet_arrow_and_packed_csv_hold_the_same(tmp_path: Path) -> None:
    table = pl.DataFrame({"n": [1.5, None, -3.0], "w": ["a", "b", None], "t": [True, False, None]})
    table.write_parquet(tmp_path / "t.parquet")
    table.write_ipc(tmp_path / "t.arrow")
    table.write_csv(tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    found = []
    for name, folder in itertools.product(("t.parquet", "t.arrow", "t.csv", "t.csv.gz"), (None, tmp_path)):
        cells = read_cells(tmp_path / name, folder=folder)
        parsed = [parse_cells(cells.column(column)) for column in ("n", "w", "t")]
        words = [p.text.filter(pl.Series(~p.missing)).to_list() for p in parsed[1:]]
        found.append((parsed[0].number[~parsed[0].missing].tolist(), words, [p.missing.tolist() for p in parsed]))
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("a,b\n1,2\n3\n", "RM580", "1 cells where the header has 2"),
        ("a,b\n1,2,3\n", "RM580", "3 cells"),
        ("a,b\n", "RM511", "no row"),
        ("", "RM511", "no row"),
        ('a,b\n1,"2\n', "RM510", "no CSV text"),
    ],
)
def test_file_that_is_no_table_is_refused_with_its_line(tmp_path: Path, text: str, code: str, words: str) -> None:
    with pytest.raises(TrainerError) as caught:
        read_cells(csv(tmp_path, text))
    assert caught.value.code == code
    assert words in caught.value.what
    assert "t.csv" in caught.value.where


BODY = "x,colour,y\n1,red,3\n4,blue,6\n7,red,9\n"
KINDS = {
    "lines of a title": ("Statistics\nSource: an office, 2024\n\n" + BODY, {"lines_in_front": 3}),
    "a title that a spreadsheet filled up": ("Statistics,,\n,,\n" + BODY, {"lines_in_front": 2}),
    "spaces behind commas": ('"x", "colour", "y"\n1, red, 3\n4, "blue", 6\n7, red, 9\n', {}),
    "a byte-order mark": ("\ufeff" + BODY, {}),
}


@pytest.mark.parametrize("name", KINDS)
def test_table_is_found_behind_what_stands_in_front_of_it(tmp_path: Path, name: str) -> None:
    text, facts = KINDS[name]
    cells = read_cells(csv(tmp_path, text))
    assert [*cells.types] == ["x", "colour", "y"]
    assert cells.column("y").str.strip_chars().to_list() == ["3", "6", "9"]
    assert cells.read == {"format": "CSV", "separator": ","} | facts


@pytest.mark.parametrize("text", ["a,b\n1,2\n3,4\n", "a,b,,\n1,2,3,4\n5,6,7,8\n", "only\n1\n2\n", 'a,"b\nc"\n1,2\n'])
def test_header_of_few_names_is_no_title(tmp_path: Path, text: str) -> None:
    assert "lines_in_front" not in read_cells(csv(tmp_path, text)).read


def test_table_of_an_older_encoding_is_read_and_reported_as_one(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_bytes("größe;ort\n1;Köln\n2;Ulm\n".encode("cp1252"))
    cells = read_cells(path)
    assert ([*cells.types], cells.column("ort").to_list()) == (["größe", "ort"], ["Köln", "Ulm"])
    assert cells.read["encoding"] == "cp1252"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("% a comment\n@RELATION demo\n@ATTRIBUTE x NUMERIC\n@DATA\n1\n", "ARFF"),
        ("-1 1:0.5 3:1e-3\n+1 2:4 # note\n", "libsvm"),
    ],
)
def test_other_programs_formats_are_named_with_a_way_out(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TrainerError, match="RM510") as caught:
        read_cells(csv(tmp_path, text))
    assert words in caught.value.what and "Write it as CSV first" in caught.value.next


def test_packed_file_that_breaks_off_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(("a,b\n" + "1,2\n" * 1000).encode())
    (tmp_path / "t.csv.gz").write_bytes(packed[:-20])
    with pytest.raises(TrainerError) as caught:
        read_cells(tmp_path / "t.csv.gz")
    assert caught.value.code == "RM516"


def test_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1, 2]}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(TrainerError) as caught:
        read_cells(path)
    assert caught.value.code == "RM516"


def test_damage_within_a_parquet_file_is_found_when_its_column_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": list(range(10_000)), "b": ["x"] * 10_000}).write_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    cells = read_cells(path, folder=tmp_path)
    with pytest.raises(TrainerError) as caught:
        cells.column("a")
    assert caught.value.code == "RM516"


@pytest.mark.parametrize(
    ("before", "lines"),
    [
        (f"#{'c' * 200_000}\n", 1),
        ("sep=;\n", 1),
        ("SEP=;\r\n", 1),
        ("# made by a tool\n", 1),
        ("# one\n# two; or; three\n\nsep=;\n", 4),
        ("\n", 1),
    ],
)
def test_lines_in_front_of_the_header_are_left_out_and_counted(tmp_path: Path, before: str, lines: int) -> None:
    cells = read_cells(csv(tmp_path, f"{before}a;b\n1;x\n2;y\n"))
    assert rows(cells) == [("1", "x"), ("2", "y")]
    assert cells.line.tolist() == [lines + 2, lines + 3]


def test_header_that_begins_with_a_mark_of_comments_is_the_header(tmp_path: Path) -> None:
    assert list(read_cells(csv(tmp_path, "#id,b\n1,x\n")).types) == ["#id", "b"]


@pytest.mark.parametrize("first", ['1;"x, y, z";3,5', '"1;2";"x;y";3', "1;x|y|z|w;3"])
def test_header_behind_a_mark_of_comments_is_kept_where_cells_hold_separators(tmp_path: Path, first: str) -> None:
    assert list(read_cells(csv(tmp_path, f"#id;name;price\n{first}\n2;b;4\n")).types) == ["#id", "name", "price"]


@pytest.mark.parametrize("folder", [False, True])
def test_column_without_name_and_cells_is_none(tmp_path: Path, folder: bool) -> None:
    read = {"folder": tmp_path} if folder else {}
    assert list(read_cells(csv(tmp_path, "a,b,\n1,x,\n2,y, \n"), **read).types) == ["a", "b"]
    assert list(read_cells(csv(tmp_path, "a,b,\n1,x,\n2,y,3\n"), **read).types) == ["a", "b", "column 3"]


def test_line_of_a_mistake_counts_those_in_front_of_the_header(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="RM580") as caught:
        read_cells(csv(tmp_path, "\nsep=;\na;b\n1;2\n3\n"))
    assert caught.value.where.endswith("line 5")


@pytest.mark.parametrize(
    ("text", "names", "lines"),
    [
        ("text;label\n" + "good, nice, fine;pos\n" * 8, ["text", "label"], {}),
        (
            "Report\nname,color,size,note\n" + "x,red,big,\n" * 8,
            ["name", "color", "size", "note"],
            {"lines_in_front": 1},
        ),
    ],
)
def test_header_is_no_line_of_a_title(tmp_path: Path, text: str, names: list[str], lines: dict[str, int]) -> None:
    cells = read_cells(csv(tmp_path, text))
    assert [*cells.types] == names
    assert {name: value for name, value in cells.read.items() if name == "lines_in_front"} == lines


def test_row_of_more_cells_than_the_header_is_answered_with_quotes(tmp_path: Path) -> None:
    for text, quoted in (("note,a,b\ngood, but dear,1,2\n", True), ("note,a,b\ngood,1\n", False)):
        with pytest.raises(TrainerError, match="cells where the header has 3") as caught:
            read_cells(csv(tmp_path, text))
        assert ("stands in quotes" in caught.value.next) == quoted
