"""Runs on this CPU whose gates fail: trained by the plain way, with the reason on record. Faults are INJECTED."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.fixtures.gates import forked, inject
from trainer.cli import main
from trainer.run.gates import child
from trainer.run.phases import prepare

pytestmark = pytest.mark.usefixtures("torch_as_before")
TINY = ["--task", "lm", "--sequence", "32", "--decoder-layers", "1", "--decoder-width", "32", "--device", "cpu"]
SHORT = ["--max-steps", "3", "--batch-size", "4"]
Injected = Callable[[str, str], None]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of its own, trained without gates."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "text.txt").write_text("In the beginning was the word, and the word was short.\n" * 60)
    assert (
        main(["train", "--output", str(folder), "--run", "base", "--data", str(folder / "text.txt"), *TINY, *SHORT])
        == 0
    )
    return folder / "base"


@pytest.fixture
def injected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Injected:
    """Put a fault into the children of the run; verdicts are kept in a folder of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(child, "run_limited", forked())
    return lambda gate, how: monkeypatch.setattr(child, "run_limited", forked(lambda: inject(gate, how)))


def train(folder: Path, base: Path, name: str, *more: str) -> dict[str, Any]:
    data = base.parent / "text.txt"
    options = [*TINY, *SHORT, "--model", str(base), "--gates", "on", "--fast", "off", *more]
    assert main(["train", "--output", str(folder), "--run", name, "--data", str(data), *options]) == 0
    record: dict[str, Any] = json.loads((folder / name / "metadata.json").read_text())
    return record


def adapter_of(folder: Path, name: str) -> bytes:
    return (folder / name / "adapter_model.safetensors").read_bytes()


def test_4_bit_weights_that_err_are_held_dequantised_with_the_same_values(
    tmp_path: Path, base: Path, injected: Injected, capsys: pytest.CaptureFixture[str]
) -> None:
    right = train(tmp_path, base, "right", "--adapter", "qlora")
    assert {name: each["status"] for name, each in right["gates"].items()} == {"adapter": "passed", "nf4": "passed"}
    injected("nf4", "wrong")
    (tmp_path / "cache" / "trainer-gates").rename(tmp_path / "away")
    held = train(tmp_path, base, "held", "--adapter", "qlora")
    assert held["gates"]["nf4"]["status"] == "wrong"
    assert "dequantised on the host" in held["gates"]["nf4"]["used"]
    assert "gate    nf4 failed: wrong" in capsys.readouterr().err
    assert adapter_of(tmp_path, "held") == adapter_of(tmp_path, "right")


def test_verdicts_are_kept_and_the_second_run_starts_no_process(
    tmp_path: Path, base: Path, injected: Injected, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, base, "first", "--adapter", "lora")

    def none(*argv: Any, **how: Any) -> Any:
        raise AssertionError("a process was started")

    monkeypatch.setattr(child, "run_limited", none)
    second = train(tmp_path, base, "second", "--adapter", "lora")
    assert second["gates"]["adapter"]["status"] == "passed"
    assert second["gates"]["adapter"]["cached"]


@pytest.mark.parametrize("how", ["crash", "memory"])
def test_adapter_whose_products_fault_trains_without_the_library(
    how: str, tmp_path: Path, base: Path, injected: Injected, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault is there until the child's environment leaves hipBLASLt; the run itself is SIMULATED on a CPU."""
    monkeypatch.delenv("ROCBLAS_USE_HIPBLASLT", raising=False)
    applied: list[int] = []
    monkeypatch.setattr(prepare, "apply", lambda treatment: applied.append(treatment.remedies))

    def unless_left() -> None:
        import os

        if os.environ.get("ROCBLAS_USE_HIPBLASLT") != "0":
            inject("adapter", how)

    monkeypatch.setattr(child, "run_limited", forked(unless_left))
    record = train(tmp_path, base, "run", "--adapter", "lora")
    assert record["gates"]["adapter"]["used"] == "BLAS without its Lt library"
    assert record["gates"]["adapter, BLAS without its Lt library"]["status"] == "passed"
    assert record["remedies"]["names"] == ["BLAS without its Lt library"]
    assert "gate failed" in record["remedies"]["reason"]
    assert applied[-1] == 1


def test_adapter_that_is_right_with_a_wide_rank_alone_trains_to_the_same_within_rounding(
    tmp_path: Path, base: Path, injected: Injected, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load

    train(tmp_path, base, "plain", "--adapter", "lora", "--gates", "off")
    monkeypatch.setattr(prepare, "apply", lambda treatment: None)
    narrow = child.tried

    def tried(gates: Any, subject: Any, **how: Any) -> Any:
        fault = "" if subject.padded else "wrong"
        monkeypatch.setattr(
            child, "run_limited", forked((lambda: inject("adapter", "wrong")) if fault else lambda: None)
        )
        return narrow(gates, subject, **how)

    monkeypatch.setattr(child, "tried", tried)
    record = train(tmp_path, base, "padded", "--adapter", "lora")
    assert record["gates"]["adapter"]["used"] == "rank filled up to 64"
    plain, padded = (load(adapter_of(tmp_path, name)) for name in ("plain", "padded"))
    assert plain.keys() == padded.keys()
    for name, value in plain.items():
        torch.testing.assert_close(padded[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("how", ["wrong", "crash"])
def test_number_format_that_fails_in_a_child_ends_a_run_that_asks_for_it(
    how: str, tmp_path: Path, base: Path, injected: Injected, capsys: pytest.CaptureFixture[str]
) -> None:
    injected("precision", how)
    options = ["--gates", "on", "--precision", "bf16", "--epochs", "1", "--data-fraction", "0.2", "--device", "cpu"]
    assert main(["train", "--output", str(tmp_path), "--run", "x", *options]) == 2
    printed = capsys.readouterr().err
    assert "RM522" in printed
    assert ("SIGSEGV" in printed) == (how == "crash")


def test_table_in_fp32_tries_nothing(tmp_path: Path, injected: Injected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "run_limited", None)
    options = ["--gates", "on", "--epochs", "1", "--data-fraction", "0.2", "--device", "cpu", "--baselines", "none"]
    assert main(["train", "--output", str(tmp_path), "--run", "x", *options]) == 0
    assert "gates" not in json.loads((tmp_path / "x" / "metadata.json").read_text())


def test_compiled_code_that_fails_in_a_child_is_not_tried_in_the_run(
    tmp_path: Path, injected: Injected, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    injected("compile", "crash")
    monkeypatch.setattr(torch, "compile", None)
    options = ["--gates", "on", "--epochs", "1", "--data-fraction", "0.2", "--device", "cpu", "--baselines", "none"]
    assert main(["train", "--output", str(tmp_path), "--run", "auto", *options, "--compile", "auto"]) == 0
    record = json.loads((tmp_path / "auto" / "metadata.json").read_text())
    assert record["gates"]["compile"] == {**record["gates"]["compile"], "status": "crash", "used": "eager code"}
    assert main(["train", "--output", str(tmp_path), "--run", "on", *options, "--compile", "on"]) == 2
    assert "RM567" in capsys.readouterr().err
