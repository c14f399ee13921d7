"""A run's folder, followed: half lines, garbage, a resumed run, and the rename at its end."""

import json
import os

import pytest

from rocmatrix.host.watch import run_events


@pytest.fixture
def partial(tmp_path):
    folder = tmp_path / ".bars.partial"
    folder.mkdir()
    return folder


def add(folder, text, name="telemetry.jsonl"):
    with (folder / name).open("a") as file:
        file.write(text)


def test_events_are_returned_once_and_half_a_line_when_it_is_whole(partial):
    run = run_events.run_of(partial.parent / "bars")
    add(partial, '{"event": "start"}\n{"event": "win')
    assert run.events() == [{"event": "start"}]
    add(partial, 'dow", "step": 3}\n')
    assert run.events() == [{"event": "window", "step": 3}]
    assert run.events() == []


def test_run_that_is_renamed_at_its_end_is_followed_on(partial):
    run = run_events.run_of(partial)
    add(partial, '{"event": "start"}\n')
    assert (run.state, len(run.events())) == ("unfinished", 1)
    add(partial, '{"event": "health"}\n')
    partial.rename(partial.parent / "bars")
    assert (run.state, run.events()) == ("finished", [{"event": "health"}])


@pytest.mark.parametrize("line", ["[1]", "null", "{", "[" * 100_000, "\x00", '"text"', "\udcff"])
def test_line_that_is_no_event_is_left_out(partial, line):
    run = run_events.run_of(partial)
    (partial / "telemetry.jsonl").write_bytes(line.encode(errors="surrogateescape") + b'\n{"event": "start"}\n')
    assert run.events() == [{"event": "start"}]


def test_figure_that_is_not_finite_is_unknown(partial):
    add(partial, '{"event": "window", "mfu": NaN, "step_ms": -Infinity, "epoch": 1e999}\n')
    assert run_events.run_of(partial).events() == [{"event": "window", "mfu": None, "step_ms": None, "epoch": None}]


def test_log_that_begins_anew_is_read_anew(partial):
    run = run_events.run_of(partial)
    add(partial, '{"event": "start"}\n{"event": "window"}\n')
    run.events()
    (partial / "telemetry.jsonl").write_text('{"event": "again"}\n')
    assert run.events() == [{"event": "again"}]


def test_long_log_gives_its_newest_events(partial, monkeypatch):
    monkeypatch.setattr(run_events, "MOST_BYTES", 100)
    add(partial, "".join(json.dumps({"event": "window", "step": step}) + "\n" for step in range(100)))
    events = run_events.run_of(partial).events()
    assert [event["step"] for event in events] == [97, 98, 99]


def test_epoch_has_the_mean_of_its_losses_and_no_line_for_each_batch(partial):
    line = {"epoch": 2, "first_step": 9, "links": ["aa", "bb"], "losses": "3f80000040400000", "head": "cc"}
    add(partial, json.dumps(line) + "\n", "batches.jsonl")
    assert run_events.run_of(partial).events() == [{"epoch": 2, "first_step": 9, "train_loss": 2.0}]


def test_words_are_of_the_newest_event_of_a_kind(partial):
    events = [
        {"event": "window", "step": 1},
        {"event": "window", "step": 40, "rows_per_second": 22871.4, "waiting": {"data": 0.031}, "mfu": None},
    ]
    assert run_events.run_of(partial).words(events) == [
        "run bars (unfinished)",
        "  window: step 40, rows_per_second 22871, waiting data 0.031",
    ]


def test_words_hold_no_control_signs(partial):
    (words,) = run_events.run_of(partial).words([{"event": "drift", "cause": "\x1b]0;title\x07"}])[1:]
    assert words == "  drift: cause ?]0;title?"


def test_pipe_in_a_log_s_place_is_no_log(partial):
    os.mkfifo(partial / "telemetry.jsonl")
    assert run_events.run_of(partial).events() == []


def test_folder_without_a_run_is_none(tmp_path):
    assert run_events.run_of(tmp_path / "absent") is None
    assert run_events.run_of(tmp_path) is None
