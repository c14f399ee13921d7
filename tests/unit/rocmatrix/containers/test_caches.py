"""Downloads and caches go to the cache volume, where a program looks for one: /tmp is memory, and capped."""

from rocmatrix.containers import runspec
from rocmatrix.containers.settings import Environment, Mount
from tests.fixtures.cells import CPU


def test_caches_of_programs_are_on_the_cache_volume():
    spec = runspec.portable_spec(CPU)
    (volume,) = [mount.target for mount in spec.of(Mount) if mount.kind == "volume"]
    named = {row.name: row.content for row in spec.of(Environment)}
    for variable in ("HF_HOME", "XDG_CACHE_HOME"):
        assert str(named[variable]).startswith(f"{volume}/")
