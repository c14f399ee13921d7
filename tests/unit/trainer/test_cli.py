from __future__ import annotations

import builtins
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

import trainer
from trainer import cli
from trainer.cli import dashed, main, parse
from trainer.runtime import error_report
from trainer.runtime.errors import CATALOG, TrainerError

ROOT = Path(trainer.__file__).parents[1]


def failing_with(error: BaseException) -> Any:
    def fail(arguments: dict[str, Any]) -> NoReturn:
        raise error

    return fail


def outcome(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    captured = capsys.readouterr()
    event: dict[str, Any] = json.loads(captured.out.splitlines()[-1])
    assert event.pop("event") == "error"
    return event, captured.err


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["errors"]])
def test_help_and_catalog_import_nothing_heavy(arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "trainer", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "argparse" in imported
    assert imported.isdisjoint({"torch", "numpy", "tqdm", "safetensors"})


def test_list_of_names_given_twice_is_refused_with_both_in_one() -> None:
    with pytest.raises(TrainerError, match="is given twice") as caught:
        parse(["train", "--ignore", "a", "--ignore=b,a"])
    assert caught.value.what.endswith("--ignore a,b")
    assert parse(["train", "--ignore", "a", "--ignore", "a"])["ignore"] == ("a",)
    assert parse(["train", "--hidden-layers", "8", "--hidden-layers", "8,8"])["hidden_layers"] == (8, 8)


def test_flags_may_be_written_with_dashes_or_underscores() -> None:
    with_dashes = parse(dashed(["train", "--batch-size", "8", "--hidden-layers=4,4", "--cell", "a_b"]))
    with_underscores = parse(dashed(["train", "--batch_size", "8", "--hidden_layers=4,4", "--cell", "a_b"]))
    assert with_dashes == with_underscores
    assert (with_dashes["batch_size"], with_dashes["hidden_layers"], with_dashes["cell"]) == (8, (4, 4), "a_b")
    assert dashed(["--data=my_file.csv", "a_b", "--", "-x_y"]) == ["--data=my_file.csv", "a_b", "--", "-x_y"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["train", "--epoch", "3"], "did you mean --epochs"),
        (["train", "--learning_rat=1"], "did you mean --learning-rate"),
        (["train", "stray"], "stray is not known to train"),
        (["train", "--epochs", "0"], "argument --epochs: '0' is not a whole number, 1 to 1000000"),
        (["train", "--epochs"], "expected one argument"),
        (["trian"], "invalid choice: 'trian'"),
        ([], "required: COMMAND"),
        (["errors", "--epochs"], "--epochs is not known to errors"),
    ],
)
def test_wrong_usage_is_named(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    event, words = outcome(capsys)
    assert event["code"] == "RM500"
    assert says in event["what"] + event.get("why", "")
    assert words.startswith("RM500 Wrong usage\n")


def test_catalog_is_printed_as_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["code"] for line in lines] == list(CATALOG)
    assert all(line.keys() == {"code", "title", "meaning", "next"} for line in lines)


def test_bench_hands_its_flags_over(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(cli, "bench", lambda argv: seen.extend(argv) or 3)
    assert main(["bench", "--only", "matmul"]) == 3
    assert seen == ["--only", "matmul"]


def test_smoke_hands_its_flags_over(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(cli, "smoke", lambda argv: seen.extend(argv) or 3)
    assert main(["smoke", "--time_limit", "5", "--help"]) == 3
    assert seen == ["--time-limit", "5", "--help"]


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (TrainerError("RM520", what="no device"), "RM520", 2),
        (KeyboardInterrupt(), "RM598", 130),
        (ModuleNotFoundError("No module named 'torch'"), "RM501", 2),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), "RM541", 2),
        (OSError(errno.EROFS, "Read-only file system", "/x"), "RM542", 2),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "RM543", 2),
        (FileExistsError(errno.EEXIST, "File exists", "/x"), "RM544", 2),
        (MemoryError("Unable to allocate 32.5 MiB"), "RM587", 2),
        (OSError(errno.ENOMEM, "Cannot allocate memory", "/x"), "RM587", 2),
    ],
)
def test_failures_get_their_code_and_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: str, status: int
) -> None:
    monkeypatch.setattr(cli, "train", failing_with(error))
    assert main(["train"]) == status
    event, words = outcome(capsys)
    assert event["code"] == code
    assert words.startswith(code)
    assert "Traceback" not in words
    assert event.get("where", "") == (getattr(error, "filename", None) or "")


def test_memory_that_runs_out_on_a_device_is_recognised_by_its_class(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    monkeypatch.setattr(cli, "train", failing_with(torch.cuda.OutOfMemoryError("HIP out of memory")))
    assert main(["train"]) == 2
    assert outcome(capsys)[0]["code"] == "RM521"


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), OSError(errno.EIO, "broken disk")])
def test_defect_keeps_its_traceback_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    monkeypatch.setattr(cli, "train", failing_with(error))
    assert main(["train", "--output", str(tmp_path)]) == 1
    event, words = outcome(capsys)
    assert (event["code"], event["what"]) == ("RM599", f"{type(error).__name__}: {error}")
    assert Path(event["where"]).parent == tmp_path
    assert "Traceback (most recent call last)" in Path(event["where"]).read_text()
    assert "Traceback" not in words


def test_traceback_goes_to_the_temporary_folder_where_the_output_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "train", failing_with(ZeroDivisionError()))
    monkeypatch.setattr(error_report.tempfile, "tempdir", str(tmp_path))
    assert main(["train", "--output", str(tmp_path / "absent")]) == 1
    assert Path(outcome(capsys)[0]["where"]).parent == tmp_path


def test_traceback_that_cannot_be_kept_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "train", failing_with(ZeroDivisionError()))
    monkeypatch.setattr(error_report.tempfile, "tempdir", str(tmp_path / "absent"))
    assert main(["train", "--output", str(tmp_path / "absent")]) == 1
    assert outcome(capsys)[0]["where"].startswith("no file")


def test_missing_package_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without_trainer_train(name: str, *arguments: Any) -> Any:
        if name == "trainer.run.train":
            raise ModuleNotFoundError("No module named 'torch'")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_trainer_train)
    assert main(["train", "--output", str(tmp_path)]) == 2
    assert outcome(capsys)[0] == {
        "code": "RM501",
        "title": CATALOG["RM501"].title,
        "what": "No module named 'torch'",
        "next": CATALOG["RM501"].next,
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; the read-only mount covers it")
def test_folder_without_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    assert main(["train", "--output", str(tmp_path)]) == 2
    assert outcome(capsys)[0]["code"] == "RM541"
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("words", "status", "words_of_error"),
    [
        (["--epochs", "3", "--output", "OUT"], 0, ""),
        (["--epochs", "1e3"], 2, "RM500"),
        (["--recipe", "absent.yaml"], 2, "RM502"),
        (["--set", "train.epoch=1"], 2, "RM503"),
        (["--epoch", "1"], 2, "RM500"),
    ],
)
def test_settings_alone_are_read_as_for_a_run_that_is_not_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, words_of_error: str
) -> None:
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    assert main(["settings", *words]) == status
    assert words_of_error in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
