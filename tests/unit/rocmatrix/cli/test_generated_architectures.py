"""The tables that host and trainer read are views of the architectures, a row each, by numbers of their own."""

import json

import pytest

from rocmatrix.cli import generated_architectures as tables
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import PROCESSORS_TABLE, ROOT, TRAINER_ARCHITECTURES
from tests.fixtures.cells import MATRIX


def rows(matrix, table):
    return {row["name"]: row for row in json.loads(tables.files(matrix)[table.relative_to(ROOT).as_posix()])}


@pytest.mark.parametrize("table", [PROCESSORS_TABLE, TRAINER_ARCHITECTURES])
def test_table_has_each_architecture_on_a_line_of_its_own(table):
    text = tables.files(MATRIX)[table.relative_to(ROOT).as_posix()]
    lines = text.splitlines()[1:-1]
    assert [json.loads(line.rstrip(","))["name"] for line in lines] == list(MATRIX.architectures)


def test_attention_is_that_of_the_newest_statement():
    newest = MATRIX.libraries.attention[-1]
    found = {name: row["attention"] for name, row in rows(MATRIX, TRAINER_ARCHITECTURES).items()}
    assert {name for name, kind in found.items() if kind == "yes"} == set(newest.supported)
    assert {name for name, kind in found.items() if kind == "flag"} == set(newest.experimental) - set(newest.supported)
    assert set(found.values()) == {"yes", "flag", "no"}


def test_architectures_that_share_a_number_are_refused_with_both_names():
    one, two = list(MATRIX.architectures.values())[:2]
    same = {**MATRIX.architectures, list(MATRIX.architectures)[1]: two.model_copy(update={"elf": one.elf})}
    with pytest.raises(RocmatrixError, match="RM001") as refused:
        tables.files(MATRIX.model_copy(update={"architectures": same}))
    names = list(MATRIX.architectures)[:2]
    assert refused.value.what == f"{' and '.join(names)}: elf {one.elf:#04x}"


def test_processor_is_what_identifies_a_card():
    row = rows(MATRIX, PROCESSORS_TABLE)["gfx1151"]
    assert row == {
        "name": "gfx1151", "elf": MATRIX.architectures["gfx1151"].elf, "generic": "gfx11-generic", "integrated": True,
    }  # fmt: skip
