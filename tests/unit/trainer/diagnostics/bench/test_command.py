"""The bench's own edge: what it takes, and that a benchmark's fault costs its own figures and no other's."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.diagnostics.bench import command
from trainer.diagnostics.probes.registry import Probe

FIGURE = """
    import sys
    from trainer.diagnostics.probes import entry
    from trainer.diagnostics.probes.verdict import Device, Number, at_most, conclude

    def measure(request):
        numbers = [Number(name="copy", value=request.seconds, unit="GB/s")]
        device = Device(kind="cpu", name="a CPU", arch="x86_64")
        return conclude(probe="sound", summary="", checks=[at_most("x", 0, 1, "")], numbers=numbers, device=device)

    sys.exit(entry.main("sound", measure))
"""
FAULTS = {
    "hangs": ("import time; time.sleep(60)", "timeout"),
    "aborts": ("import os; os.abort()", "crash"),
    "ends without a verdict": ("", "fail"),
}

Make = Callable[[str, str, float], Probe]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Write a benchmark of a few lines as a module on the import path."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def write(name: str, source: str, timeout: float) -> Probe:
        (tmp_path / f"bench_{name}.py").write_text(textwrap.dedent(source))
        return Probe(name=name, module=f"bench_{name}", summary="for the test", timeout_seconds=timeout)

    return write


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_costs_only_its_own_figures(fault: str, make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    source, status = FAULTS[fault]
    chosen = [make("faulty", source, 0.6), make("sound", FIGURE, 60)]
    assert command.bench(chosen, "any", seconds=0.4, timeout=None) == 1
    faulty, sound, end = events(capsys)
    assert (faulty["status"], faulty["numbers"]) == (status, [])
    assert sound["numbers"] == [{"name": "copy", "value": 0.4, "unit": "GB/s"}]
    assert (end["measured"], end["failures"]) == (["sound"], {"faulty": status})


def test_summary_names_the_device(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.bench([make("sound", FIGURE, 60)], "any", seconds=0.1, timeout=None) == 0
    assert events(capsys)[-1]["ran_on"] == "the CPU, a CPU (x86_64); no card was measured"


def test_card_that_is_expected_and_absent_is_no_measurement(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.bench([make("sound", FIGURE, 60)], "rocm", seconds=0.1, timeout=None) == 1
    *_, end = events(capsys)
    assert (end["measured"], end["ran_on"]) == ([], "nothing")


@pytest.mark.parametrize(
    ("argv", "code", "phrase"),
    [
        (["--only", "matmull"], "RM525", "matmul"),
        (["--only", ","], "RM525", "no benchmark is called ''"),
        (["--seconds", "0"], "RM500", "above zero"),
        (["--device", "gpu"], "RM500", "rocm"),
        (["--fast"], "RM500", "--fast"),
    ],
)
def test_wrong_usage_is_named(argv: list[str], code: str, phrase: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(argv) == 2
    (error,) = events(capsys)
    assert error["code"] == code
    assert phrase in json.dumps(error)


def test_next_step_lists_every_benchmark_once_and_names_the_wrapper_s_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(["--only", "nope"]) == 2
    assert events(capsys)[0]["next"].count("matmul") == 1
    assert command.main(["--seconds", "x"]) == 2
    reported = events(capsys)[0]["next"]
    assert "usage: trainer" not in reported
    assert "./invokew bench --help" in reported


def test_options_of_the_wrapper_are_those_of_the_parser() -> None:
    taken = {action.dest for action in command.parser()._actions} - {"help"}
    assert taken == {option["name"] for option in command.OPTIONS}


@pytest.mark.parametrize("typed", [["matmul,"], [" matmul , "], ["matmul", ","], [",matmul"]])
def test_comma_without_a_name_behind_it_names_no_benchmark(typed: list[str]) -> None:
    assert [each.name for each in command.select(typed)] == ["matmul"]
