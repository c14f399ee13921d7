"""Where --micro-batch auto starts. Free memory and the card are STAND-INS; the plan and the CPU runs are real."""

from __future__ import annotations

import json

import pytest

from tests.fixtures.footprints import ON_CARD
from tests.fixtures.later import imported_later
from trainer.cli import main
from trainer.device.accelerator import Accelerator
from trainer.device.precision import Precision
from trainer.run.memory_plan import start_size as sizes
from trainer.run.memory_plan.cards import CONTEXT
from trainer.run.memory_plan.program import measured
from trainer.run.memory_plan.shapes import Program
from trainer.run.memory_plan.start_size import StartSize, planned_size, size_by_process
from trainer.run.phases import prepare
from trainer.runtime.child_process import Outcome

CARD = Accelerator(device="cuda:0", kind="rocm", name="RX 7900 XTX", arch="gfx1100", memory_bytes=0, reason="")
PROGRAM = {"raw": {**ON_CARD.raw, "num_hidden_layers": 1}, "sequence": 128, "fast": False, "precision": "fp32"}


def request(room, rows=8):
    card = {"name": CARD.name, "arch": CARD.arch, "memory": room + CONTEXT, "hip": True}
    return {"program": PROGRAM, "rows": rows, "card": card}


def needed(rows, pieces):
    kernels = ("efficient", "efficient")
    return measured(Program(**PROGRAM, rows=rows, pieces=pieces, attention=kernels)).reserved


def test_size_is_the_largest_power_of_two_that_is_planned_to_fit():
    found = planned_size(request(needed(4, 2), rows=32))
    assert 4 <= found.rows < 32
    assert found.needed_bytes <= found.budget_bytes
    one = planned_size(request(1, rows=2))
    assert one.rows == 1
    assert one.needed_bytes > one.budget_bytes


def test_method_by_peft_is_planned_by_its_own_weights():
    imported_later("peft", "peft is not installed")

    def planned(**method):
        own = {**PROGRAM, "adapter": "peft", "peft": method, "method": "sft"}
        found = planned_size({**request(2**40, rows=4), "program": json.loads(json.dumps(own))})
        assert found.rows is None
        return found.needed_bytes

    small, large = planned(peft_type="IA3"), planned(peft_type="LOKR", r=64, target_modules="all-linear")
    assert small < large < planned_size(request(2**40, rows=4)).needed_bytes


def test_process_of_its_own_plans_the_same():
    found = size_by_process(request(2**40, rows=1))
    assert found == planned_size(request(2**40, rows=1))
    assert found.rows is None


@pytest.mark.parametrize(
    ("returncode", "timed_out", "why"), [(-11, False, "SIGSEGV"), (1, False, "exit status 1"), (None, True, "timeout")]
)
def test_plan_that_dies_leaves_the_run_as_it_was(monkeypatch, returncode, timed_out, why):
    """The crash is INJECTED."""
    ended = Outcome(returncode=returncode, timed_out=timed_out, stdout="", stderr="gone", seconds=0.0)
    monkeypatch.setattr(sizes, "run_limited", lambda *args, **kwargs: ended)
    found = size_by_process(request(2**40))
    assert found.rows is None
    assert why in found.why


@pytest.mark.parametrize("stdout", ["", "a library's word", "[1]", '{"other": 1}'])
def test_process_that_prints_no_plan_leaves_the_run_as_it_was(monkeypatch, stdout):
    """The output is INJECTED."""
    ended = Outcome(returncode=0, timed_out=False, stdout=stdout, stderr="", seconds=0.0)
    monkeypatch.setattr(sizes, "run_limited", lambda *args, **kwargs: ended)
    assert size_by_process(request(2**40)) == StartSize(rows=None, why="no plan was made: the process printed no plan")


def test_plan_is_read_next_to_what_libraries_print(monkeypatch):
    """The output is INJECTED."""
    plan = StartSize(rows=2, why="it fits")
    stdout = f"warning\n{json.dumps(plan.facts())}\nlibrary closed\n"
    ended = Outcome(returncode=0, timed_out=False, stdout=stdout, stderr="", seconds=0.0)
    monkeypatch.setattr(sizes, "run_limited", lambda *args, **kwargs: ended)
    assert size_by_process(request(2**40)) == plan


def test_network_too_large_for_a_command_line_is_not_planned():
    large = request(2**40)
    large["program"] = {**PROGRAM, "raw": {**PROGRAM["raw"], "id2label": "x" * 2**18}}
    assert "Argument list too long" in size_by_process(large).why


def train(folder, name, data, *more):
    tiny = ["--task", "lm", "--sequence", "32", "--decoder-layers", "1", "--decoder-width", "32", "--device", "cpu"]
    run = ["--run", name, "--data", str(data), "--batch-size", "4", "--max-steps", "3"]
    assert main(["train", "--output", str(folder), *run, *tiny, *more]) == 0
    return folder / name


@pytest.mark.usefixtures("torch_as_before")
def test_run_that_starts_from_the_plan_is_the_one_that_was_given_the_size(tmp_path, monkeypatch):
    data = tmp_path / "text.txt"
    data.write_text("In the beginning was the word, and the word was short.\n" * 30)
    given = train(tmp_path, "given", data, "--micro-batch", "2")
    start = StartSize(rows=2, why="STAND-IN", needed_bytes=1, budget_bytes=2)
    monkeypatch.setattr(prepare, "planned_start", lambda *args: start)
    planned = train(tmp_path, "planned", data)
    assert (planned / "model.safetensors").read_bytes() == (given / "model.safetensors").read_bytes()
    record = json.loads((planned / "metadata.json").read_text())
    assert record["micro_batch"] == start.facts()
    assert record["config"]["micro_batch"] == 2


class Attempt:
    """What planned_start reads of an attempt."""

    def __init__(self, **more):
        from trainer.config.recipe import resolve
        from trainer.distributed.collectives import Ranks

        self.config = resolve({"task": "lm", "data": "x.txt", **more})
        self.name, self.bootstrap = None, Ranks()


def test_card_is_planned_for_once_and_only_where_no_size_is_given(monkeypatch):
    from dataclasses import replace
    from types import SimpleNamespace

    calls = []
    monkeypatch.setattr(
        prepare, "start_size", lambda planned, **how: calls.append(how) or StartSize(rows=2, why="STAND-IN")
    )
    network, precision = SimpleNamespace(planned={}), Precision(name="bf16", reason="", device_type="cuda")
    assert prepare.planned_start(network, Attempt(), 100, CARD, precision).rows == 2
    assert calls[0]["rows"] == 8
    assert prepare.planned_start(network, Attempt(micro_batch=4), 100, CARD, precision) is None
    assert prepare.planned_start(network, Attempt(), 100, replace(CARD, device="cpu"), precision) is None
    assert prepare.planned_start(SimpleNamespace(planned=None), Attempt(), 100, CARD, precision) is None
    assert len(calls) == 1
