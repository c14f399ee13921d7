"""The loop is compiled where it is worth it and can be, and where it cannot be nothing fails."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.profile_bars import assert_same
from trainer.data.conventions import ProfileConventions
from trainer.data.profiles.compiled import library
from trainer.data.profiles.developing import developing_levels, numpy_levels
from trainer.data.profiles.profile import BarRows


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    library.loop.cache_clear()
    yield
    library.loop.cache_clear()


def compilers(folder: Path, script: str) -> str:
    """Return a PATH whose compilers are `script`."""
    for name in library.COMPILERS:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("script", [None, "exit 1", "exit 0", "kill -9 $$", 'echo text > "$6"', "exec sleep 30"])
def test_loop_without_a_working_compiler_is_absent_and_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None
) -> None:
    (programs := tmp_path / "programs").mkdir()
    (scratch := tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(library, "PATIENCE", 0.5)
    monkeypatch.setenv("PATH", "" if script is None else compilers(programs, f"PATH=/usr/bin:/bin; {script}"))
    for name in library.CACHES:
        monkeypatch.delenv(name, raising=False)
    assert library.loop() is None
    assert list(scratch.iterdir()) == []


def test_loop_is_loaded_from_a_cache_folder_where_the_first_folder_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if library.loop() is None:
        pytest.skip("no C compiler is installed here")
    library.loop.cache_clear()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    for name in library.CACHES:
        monkeypatch.delenv(name, raising=False)
    assert library.loop() is None
    library.loop.cache_clear()
    monkeypatch.setenv(library.CACHES[0], str(tmp_path))
    assert library.loop() is not None
    assert list(tmp_path.iterdir()) == []


def test_developing_levels_are_computed_by_the_loop_from_the_bars_on_where_it_is_worth_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, compiled = [], library.loop()
    if compiled is None:
        pytest.skip("no C compiler is installed here")

    def counted(*given: object) -> None:
        calls.append(given)
        compiled(*given)

    monkeypatch.setattr(library, "loop", lambda: counted)
    monkeypatch.setattr(library._Seen, "bars", 0)
    monkeypatch.setattr(library, "WORTH", 5)
    numbers = np.arange(3, dtype=np.int64)
    rows = BarRows(low=numbers, high=numbers + 2, share=numbers + 1, more_low=0 * numbers, more_high=0 * numbers)
    for expected in (0, 1, 2):
        found = developing_levels(rows, np.array([0]), ProfileConventions())
        assert len(calls) == expected
        assert_same(found, numpy_levels(rows, np.array([0]), ProfileConventions()))
    for other in (ProfileConventions(rows="occupied"), ProfileConventions(expansion="two")):
        assert_same(developing_levels(rows, np.array([0]), other), numpy_levels(rows, np.array([0]), other))
    assert len(calls) == 2
