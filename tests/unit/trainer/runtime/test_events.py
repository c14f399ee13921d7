from __future__ import annotations

import json

import pytest

from trainer.runtime.events import emit, progress, say


def test_event_is_one_json_line_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    emit("epoch", loss=0.5, text="two\nlines")
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert json.loads(captured.out) == {"event": "epoch", "loss": 0.5, "text": "two\nlines"}
    assert captured.err == ""


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_value_that_json_cannot_hold_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        emit("epoch", loss=value)


def test_messages_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    say("hello")
    assert capsys.readouterr() == ("", "hello\n")


def test_progress_in_a_log_file_is_modest(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(1000) as bar:
        for _ in range(1000):
            bar.update()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert 1 <= captured.err.count("\r") <= 3
    assert "epoch 1000/1000" in captured.err
    assert "ETA" in captured.err
