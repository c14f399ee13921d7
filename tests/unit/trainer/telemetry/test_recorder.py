from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.telemetry.recorder import Telemetry, ThroughputReference, Window, flat, status_of
from trainer.telemetry.sensors import Reading
from trainer.telemetry.trackers import Guarded


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Memory:
    def __init__(self, fails: bool = False) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.closed, self.fails = False, fails

    def log(self, step: int, figures: Any) -> None:
        if self.fails:
            raise ConnectionError("the network is gone")
        self.logged.append((step, dict(figures)))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_window_reports_rate_waiting_mfu_memory_and_sensors(tmp_path: Path, clock: Clock) -> None:
    tracker = Memory()
    telemetry = Telemetry(
        file=tmp_path / "t.jsonl",
        trackers=[Guarded("memory", tracker)],
        sensor=lambda: Reading(temperature_c=61),
        memory=lambda: {"reserved": 2**30, "total": 20 * 2**30},
        reference=ThroughputReference(flops_per_row=1e6, peak=1e9),
        checkpoint_age=lambda: 4.0,
        clock=clock,
        window_seconds=4,
    )
    with telemetry.waiting("data"):
        clock.now += 1
    assert telemetry.on_step(100) is None
    clock.now += 3
    window = telemetry.on_step(100)
    assert window is not None
    assert (window.step, window.steps, window.seconds, window.step_ms, window.rows_per_second) == (2, 2, 4, 2000, 50)
    assert window.waiting == {"data": 0.25}
    assert window.mfu == pytest.approx(0.05)
    assert telemetry.status() == "50 rows/s, 5.0% MFU, 25% waiting for data, 1.0/20.0 GiB, 61 °C, checkpoint 4 s ago"
    telemetry.close()
    start, written = lines(tmp_path / "t.jsonl")
    assert (start["event"], start["peak"]) == ("start", 1e9)
    assert (written["event"], written["sensors"], written["checkpoint_age_s"]) == ("window", {"temperature_c": 61}, 4)
    ((step, figures),) = tracker.logged
    assert (step, figures["waiting/data"], figures["memory/reserved"]) == (2, 0.25, 2**30)
    assert tracker.closed


def test_window_has_the_mean_utilization_of_each_card_read_once_a_second(clock: Clock) -> None:
    looks = iter([{"cuda:0": 90.0, "cuda:1": 10.0}, {"cuda:0": 100.0}, {"cuda:0": 80.0, "cuda:1": 20.0}])
    telemetry = Telemetry(file=None, clock=clock, window_seconds=3)
    telemetry.follow_utilization(lambda: next(looks))
    window = None
    for _ in range(12):
        clock.now += 0.25
        window = telemetry.on_step(10) or window
    assert window is not None
    assert window.utilization == {"cuda:0": 90.0, "cuda:1": 15.0}
    assert "90%, 15% busy" in telemetry.status()


def test_step_looks_at_nothing_but_the_clock(tmp_path: Path, clock: Clock) -> None:
    def forbidden() -> Any:
        raise AssertionError("looked at between two windows")

    telemetry = Telemetry(file=None, sensor=forbidden, memory=forbidden, clock=clock, window_seconds=4)
    for _ in range(1000):
        assert telemetry.on_step(1) is None


def test_unknown_value_is_left_out(clock: Clock) -> None:
    telemetry = Telemetry(
        file=None, clock=clock, window_seconds=1, reference=ThroughputReference(flops_per_row=1.0, why="unknown")
    )
    assert telemetry.status() == ""
    clock.now += 2
    telemetry.on_step(10)
    assert telemetry.status() == "5 rows/s"


def test_epoch_ends_the_window_and_reaches_the_trackers(clock: Clock) -> None:
    tracker = Memory()
    telemetry = Telemetry(file=None, trackers=[Guarded("memory", tracker)], clock=clock)
    telemetry.resume(40)
    clock.now += 1
    telemetry.on_step(8)
    telemetry.on_epoch({"train_loss": 0.5})
    assert telemetry.latest is not None
    assert telemetry.latest.step == 41
    assert tracker.logged[-1] == (41, {"train_loss": 0.5})
    telemetry.on_epoch({"train_loss": 0.4})
    assert [step for step, _ in tracker.logged] == [41, 41, 41]


def test_epochs_of_milliseconds_share_a_window(tmp_path: Path, clock: Clock) -> None:
    telemetry = Telemetry(file=tmp_path / "t.jsonl", clock=clock)
    for _ in range(100):
        clock.now += 0.005
        telemetry.on_step(1)
        telemetry.on_epoch({"train_loss": 0.5})
    telemetry.close()
    assert [line["event"] for line in lines(tmp_path / "t.jsonl")] == ["start", "window"]


def test_drift_is_reported_once_for_a_series(tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry(
        file=tmp_path / "t.jsonl", clock=clock, window_seconds=0.5, sensor=lambda: Reading(clock_mhz=2000)
    )
    for seconds in (1, 1, 1, 1, 2, 2, 2):
        clock.now += seconds
        telemetry.on_step(10)
    captured = capsys.readouterr()
    (event,) = [json.loads(line) for line in captured.out.splitlines()]
    assert (event["event"], event["slower"], event["throttled"]) == ("drift", 1.0, False)
    assert captured.err.count("slower: steps take 100% longer") == 1
    assert [line.get("drift", {}).get("slower") for line in lines(tmp_path / "t.jsonl")[-3:]] == [None, 1.0, 1.0]


def test_tracker_that_fails_is_left_behind(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    broken, sound = Memory(fails=True), Memory()
    telemetry = Telemetry(file=None, trackers=[Guarded("broken", broken), Guarded("sound", sound)], clock=clock)
    telemetry.on_epoch({"loss": 1.0})
    telemetry.on_epoch({"loss": 2.0})
    telemetry.close()
    assert len(sound.logged) == 2
    assert not broken.closed
    assert (
        capsys.readouterr().err
        == "broken failed and is switched off, training continues: ConnectionError: the network is gone\n"
    )


def test_full_disk_costs_the_measurements_not_the_run(mount_tmpfs, clock: Clock, capsys) -> None:
    disk = mount_tmpfs("size=4096")
    telemetry = Telemetry(file=disk / "t.jsonl", clock=clock, window_seconds=0.5)
    (disk / "filler").write_bytes(b"x" * 0)
    for _ in range(100):
        clock.now += 1
        telemetry.on_step(1)
    telemetry.close()
    assert "training continues without it" in capsys.readouterr().err


def test_waiting_below_one_per_cent_is_not_reported() -> None:
    window = Window(
        step=1,
        steps=1,
        seconds=1,
        step_ms=1,
        rows_per_second=7,
        waiting={"data": 0.001},
        mfu=None,
        memory={},
        sensors={},
        checkpoint_age_s=None,
    )
    assert status_of(window, None) == "7 rows/s"


def test_nested_figures_become_paths() -> None:
    assert flat({"a": 1, "b": {"c": 2.5, "d": {"e": 3}}, "f": None, "g": "text"}) == {"a": 1, "b/c": 2.5, "b/d/e": 3}


class Health:
    """Stands in for the cards' counters."""

    def __init__(self, *moved: str) -> None:
        self.moved = list(moved)

    def report(self) -> dict[str, Any]:
        words = "card 0000:03:00.0: ras/umc/ue rose from 0 to 1" if self.moved else ""
        return {"moved": self.moved, "unknown": [], "what": words, "cards": {}, "seconds": 1.0}


@pytest.mark.parametrize("moved", [[], ["0000:03:00.0"]])
def test_health_is_written_once_at_the_end_and_what_moved_is_reported(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str], moved: list[str]
) -> None:
    telemetry = Telemetry(file=tmp_path / "t.jsonl", clock=clock)
    telemetry.follow_health(Health(*moved))  # type: ignore[arg-type]
    telemetry.close()
    written = [line for line in lines(tmp_path / "t.jsonl") if line["event"] == "health"]
    captured = capsys.readouterr()
    assert [line["moved"] for line in written] == [moved]
    assert json.loads(captured.out)["event"] == "health"
    assert ("raises no level" in captured.err) == bool(moved)


@pytest.mark.parametrize(("ranks", "joules"), [(1, 6.0), (2, None)])
def test_energy_of_a_row_is_the_power_over_the_window(clock: Clock, ranks: int, joules: float | None) -> None:
    reference = ThroughputReference(ranks=ranks)
    sensor = lambda: Reading(power_w=300)  # noqa: E731
    telemetry = Telemetry(file=None, sensor=sensor, clock=clock, window_seconds=2, reference=reference)
    clock.now += 2
    window = telemetry.on_step(100)  # of all ranks, and the power of one card
    assert window is not None
    assert window.joules_per_row == joules
