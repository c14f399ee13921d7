"""Exceptions of any kind become errors of the catalog, with a traceback kept for those that nothing explains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.runtime import signals
from trainer.runtime.error_report import coded, report
from trainer.runtime.errors import TrainerError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TrainerError("RM530", what="x"), "RM530"),
        (KeyboardInterrupt(), "RM598"),
        (ImportError("no module named numpy"), "RM501"),
        (MemoryError(), "RM587"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), "RM521"),
        (OSError(28, "No space left on device", "/x"), "RM543"),
        (RuntimeError("I/O error: No space left on device (os error 28)"), "RM543"),  # a package of Rust, its own class
        (ValueError("a defect"), "RM599"),
    ],
)
def test_exception_has_the_code_of_its_kind(error: BaseException, code: str, tmp_path: Path) -> None:
    assert coded(error, tmp_path).code == code


class PanicError(BaseException):
    """A STAND-IN for pyo3's PanicException."""


@pytest.mark.parametrize(("stopped", "code"), [(True, "RM598"), (False, "RM599")])
def test_panic_of_rust_after_ctrl_c_is_the_stop(
    stopped: bool, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals._Seen, "signal", stopped)
    assert coded(PanicError("KeyboardInterrupt"), tmp_path).code == code
    assert coded(ValueError("a defect"), tmp_path).code == "RM599"


def test_traceback_of_an_unexpected_error_is_kept_in_the_output_folder(tmp_path: Path) -> None:
    found = coded(ValueError("a defect"), tmp_path)
    assert "a defect" in Path(str(found.where)).read_text()
    assert Path(str(found.where)).parent == tmp_path


def test_report_is_text_on_stderr_and_one_event_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(TrainerError("RM530", what="x", where="epoch 3")) == 2
    captured = capsys.readouterr()
    event = json.loads(captured.out)
    assert (event["event"], event["code"], event["where"]) == ("error", "RM530", "epoch 3")
    assert captured.err.startswith("RM530 ")


@pytest.mark.parametrize(
    ("rank", "code", "reported"),
    [("0", "RM554", True), ("1", "RM554", False), ("1", "RM598", False), ("1", "RM521", True)],
)
def test_stop_of_several_ranks_is_reported_by_the_first_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rank: str, code: str, reported: bool
) -> None:
    monkeypatch.setenv("RANK", rank)
    error = TrainerError(code, what="x")
    assert report(error) == error.exit_status
    out, err = capsys.readouterr()
    assert (code in out, code in err) == (reported, reported)
