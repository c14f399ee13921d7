"""Processors of the YAML and LLVM's others make one table without a name or a number twice."""

import json

from rocmatrix.host import processors
from rocmatrix.runtime.paths import PROCESSORS_TABLE

ROWS = json.loads(PROCESSORS_TABLE.read_text("utf-8"))


def test_processors_of_both_sources_have_numbers_and_names_of_their_own():
    numbers = [row["elf"] for row in ROWS] + [*processors.OTHERS, *processors.GENERIC_NUMBERS]
    names = [row["name"] for row in ROWS] + [*processors.OTHERS.values(), *processors.GENERIC_NUMBERS.values()]
    assert len(set(numbers)) == len(numbers) == len(processors.NUMBERS)
    assert len(set(names)) == len(names)


def test_generic_processors_are_numbered_and_run_on_known_ones():
    assert set(processors.GENERIC) < set(processors.GENERIC_NUMBERS.values())
    assert {name for names in processors.GENERIC.values() for name in names} < set(processors.NUMBERS.values())


def test_tables_agree_with_what_the_kernel_and_llvm_state():
    assert processors.NUMBERS[0x41] == "gfx1100"
    assert "gfx1201" in processors.GENERIC["gfx12-generic"]
    assert {"gfx1151", "gfx90c", "gfx902"} < processors.INTEGRATED
    assert not {"gfx1100", "gfx942"} & processors.INTEGRATED
