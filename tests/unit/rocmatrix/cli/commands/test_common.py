"""Standard output of a job: JSON lines for programs where asked for, else data and the end of a run."""

import json
import sys

import pytest

from rocmatrix.cli.commands.common import event_printer

EVENTS = (
    {"event": "forecast", "date": "2020-01-02", "close": 1.5},
    {"event": "epoch", "loss": 0.1},
    {"event": "forecast", "date": "2020-01-03", "close": None},
    {"event": "generated", "model": "model", "text": "two\nlines"},
)


def printed(capsys, *, as_json):
    show = event_printer(as_json=as_json)
    for event in EVENTS:
        show(event)
    return capsys.readouterr().out


def test_events_requested_as_json_are_one_object_a_line(capsys):
    assert [json.loads(line) for line in printed(capsys, as_json=True).splitlines()] == [*EVENTS]


def test_pipe_gets_forecasts_as_csv_and_texts_and_no_json(capsys):
    assert printed(capsys, as_json=False) == "date,close\n2020-01-02,1.5\n2020-01-03,\ntwo\nlines\n"


def test_terminal_gets_a_text_once(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "lines" not in printed(capsys, as_json=False)


@pytest.mark.parametrize("as_json", [True, False])
def test_printers_keep_no_state_of_an_earlier_job(capsys, as_json):
    assert printed(capsys, as_json=as_json) == printed(capsys, as_json=as_json)
