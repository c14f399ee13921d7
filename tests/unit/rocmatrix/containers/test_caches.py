"""Downloads and caches go to the cache volume, where a program looks for one: /tmp is memory, and capped."""

import pytest

from rocmatrix.containers import runspec
from rocmatrix.containers.settings import Environment, Mount
from tests.fixtures.cells import CPU, GFX906, GFX1100


def test_caches_of_programs_are_on_the_cache_volume():
    spec = runspec.portable_spec(CPU)
    (volume,) = [mount.target for mount in spec.of(Mount) if mount.kind == "volume"]
    named = {row.name: row.content for row in spec.of(Environment)}
    for variable in ("HF_HOME", "XDG_CACHE_HOME"):
        assert str(named[variable]).startswith(f"{volume}/")


@pytest.mark.parametrize("cell", (CPU, GFX906, GFX1100), ids=lambda cell: cell.name)
def test_variable_is_set_once_and_as_the_cell_states(cell):
    rows = [(row.name, row.content) for row in runspec.portable_spec(cell).of(Environment)]
    assert len({name for name, _ in rows}) == len(rows)
    assert {(row.name, row.value) for row in cell.environment} <= set(rows)
