from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trainer.distributed.watchdog.heartbeat import SECTIONS, Beat, HeartbeatWriter, read_beat


def read(path: Path) -> Beat:
    beat = read_beat(path)
    assert beat is not None
    return beat


def test_reader_sees_where_the_rank_is(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rank0.beat"
    assert read_beat(path) is None
    with HeartbeatWriter(path) as beats:
        beats.step(7)
        before = time.monotonic()
        with beats.section("backward"):
            inside = read(path)
        after = read(path)
    assert (inside.pid, inside.step, inside.section) == (os.getpid(), 7, "backward")
    assert before <= inside.entered <= time.monotonic()
    assert inside.passes["backward"] == 0
    assert (after.section, after.passes["backward"]) == ("start", 1)
    assert read(path).section == "end"


def test_longest_stay_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rank0.beat"
    with HeartbeatWriter(path) as beats:
        for seconds in (0.0, 0.05, 0.0):
            with beats.section("data"):
                time.sleep(seconds)
        found = read(path)
    assert found.passes["data"] == 3
    assert 0.05 <= found.longest["data"] < 5


def test_sections_nest_and_each_starts_its_own_clock(tmp_path: Path) -> None:
    path = tmp_path / "rank0.beat"
    with HeartbeatWriter(path) as beats, beats.section("backward"):
        entered = read(path).entered
        with beats.section("comms"):
            assert read(path).section == "comms"
        back = read(path)
        assert back.section == "backward"
        assert back.entered > entered


def test_stay_that_failed_teaches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rank0.beat"
    with HeartbeatWriter(path) as beats:
        with pytest.raises(RuntimeError), beats.section("forward"):
            raise RuntimeError
        assert read(path).passes["forward"] == 0
        assert read(path).section == "start"


def test_unknown_section_is_a_programming_error(tmp_path: Path) -> None:
    with (
        HeartbeatWriter(tmp_path / "rank0.beat") as beats,
        pytest.raises(KeyError, match="lunch"),
        beats.section("lunch"),
    ):
        pass


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\1" * 8 * (5 + 2 * len(SECTIONS))])
def test_another_versions_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rank0.beat"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="no heartbeat"):
        read_beat(path)
