"""From verdicts to what is used: each gate that fails has its plain way, on record. Verdicts here are made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.footprints import SMALL
from tests.fixtures.gates import SUBJECT
from trainer.config.train import TrainConfig
from trainer.device.accelerator import Accelerator
from trainer.distributed.collectives import Ranks
from trainer.run.gates import cache, child, decide
from trainer.run.gates.child import Verdict
from trainer.run.gates.decide import PADDED, PLAIN_BLAS, WIDE_RANK, Gates, Trier, decided, gates_for, treated_by
from trainer.run.gates.subject import ADAPTER, CANARY, COMPILE, KERNELS, NF4, PRECISION, Subject
from trainer.run.repeated_faults.remedy import Treatment
from trainer.runtime.errors import TrainerError

CARD = Accelerator(device="cuda:0", kind="rocm", name="SIMULATED", arch="gfx1100", memory_bytes=2**34)
HOST = replace(CARD, device="cpu", kind="cpu")
LM: dict[str, Any] = {"task": "lm", "data": Path("text.txt")}
ATTENTION = [f"attention {kernel}" for kernel in KERNELS]
Answer = Callable[[str, Subject, bool], str]


@pytest.fixture
def trial_stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Answers in place of processes: `answer(gate, subject, plain_blas)` is a status; `calls` are the questions."""
    found: dict[str, Any] = {"answer": lambda gate, subject, plain: "passed", "calls": []}

    def tried(
        gates: Sequence[str],
        subject: Subject,
        *,
        deterministic: bool = True,
        plain_blas: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> list[Verdict]:
        found["calls"].append((list(gates), subject.precision, subject.padded, plain_blas, bool(environment)))
        answers = {gate: found["answer"](gate, subject, plain_blas) for gate in gates}
        return [Verdict(gate=gate, status=status, why=f"{gate}'s why") for gate, status in answers.items()]

    monkeypatch.setattr(child, "tried", tried)
    monkeypatch.setattr(cache, "folder_of", lambda: tmp_path / "cache")
    return found


def fails(*names: str, status: str = "wrong") -> Answer:
    return lambda gate, subject, plain: status if gate in names else "passed"


TRIER = Trier(accelerator=CARD)


@pytest.mark.parametrize(
    ("settings", "accelerator", "names"),
    [
        ({}, CARD, []),  # a table in fp32
        ({"precision": "auto"}, CARD, [PRECISION]),
        ({"precision": "bf16"}, HOST, []),
        ({"precision": "bf16", "gates": "on"}, HOST, [PRECISION]),
        ({"precision": "auto", "gates": "on"}, HOST, []),  # which is fp32 there
        ({"compile": "auto"}, CARD, [CANARY, COMPILE]),
        ({"precision": "bf16", "gates": "off"}, CARD, []),
        ({**LM, "precision": "bf16"}, CARD, [PRECISION, *ATTENTION, CANARY, COMPILE]),
        ({**LM, "adapter": "lora", "model": Path("m")}, CARD, [ADAPTER, *ATTENTION, CANARY, COMPILE]),
        ({**LM, "adapter": "qlora", "model": Path("m"), "fast": "off"}, CARD, [ADAPTER, NF4]),
        ({**LM, "fast": "off"}, CARD, []),
        ({**LM, "parallel": "fsdp2"}, CARD, []),
    ],
)
def test_run_passes_the_gates_of_what_it_uses(
    settings: dict[str, Any], accelerator: Accelerator, names: list[str]
) -> None:
    found, why = gates_for(TrainConfig.of(**settings), accelerator)
    assert found == names
    assert bool(why) == (not names)


def test_gates_that_pass_change_nothing(trial_stub: dict[str, Any]) -> None:
    names = [PRECISION, ADAPTER, NF4, *ATTENTION, CANARY, COMPILE]
    found = decided(names, SUBJECT, TRIER)
    assert [each.gate for each in found.verdicts] == names
    assert (found.choices, found.refusals(), found.plain_blas, found.padded, found.dense_nf4) == (
        {},
        {},
        False,
        0,
        False,
    )
    assert trial_stub["calls"] == [(names, "bf16", 0, False, False)]


@pytest.mark.parametrize("status", ["wrong", "crash", "hang", "memory", "error"])
@pytest.mark.parametrize(
    ("gate", "refused"),
    [
        ("attention flash", {"flash"}),
        ("attention math", {"math"}),
        (COMPILE, {"compile"}),
        (CANARY, {"triton", "compile"}),
        (NF4, set()),
    ],
)
def test_gate_that_fails_leaves_the_plain_way_on_record(
    gate: str, refused: set[str], status: str, trial_stub: dict[str, Any]
) -> None:
    trial_stub["answer"] = fails(gate, status=status)
    found = decided([NF4, *ATTENTION, CANARY, COMPILE], SUBJECT, TRIER)
    assert set(found.refusals()) == refused
    assert all(f"{gate}'s why" in why for why in found.refusals().values())
    assert found.dense_nf4 == (gate == NF4)
    record = found.facts()
    assert record[gate]["status"] == status
    assert record[gate]["used"]
    assert [name for name, each in record.items() if "used" in each] == [gate]


@pytest.mark.parametrize("status", ["absent", "untried"])
def test_gate_that_is_absent_or_untried_refuses_nothing(status: str, trial_stub: dict[str, Any]) -> None:
    trial_stub["answer"] = fails(*ATTENTION, CANARY, COMPILE, NF4, PRECISION, ADAPTER, status=status)
    found = decided([PRECISION, ADAPTER, NF4, *ATTENTION, CANARY, COMPILE], SUBJECT, TRIER)
    assert (found.refusals(), found.choices, found.plain_blas) == ({}, {}, False)


def test_number_format_that_fails_has_the_others_tried_in_fp32(trial_stub: dict[str, Any]) -> None:
    trial_stub["answer"] = fails(PRECISION, status="crash")
    found = decided([PRECISION, NF4], SUBJECT, TRIER)
    assert [call[:2] for call in trial_stub["calls"]] == [([PRECISION, NF4], "bf16"), ([NF4], "fp32")]
    assert found.choices[PRECISION] == "fp32"
    assert found.fault(PRECISION) == f"{PRECISION}'s why"


@pytest.mark.parametrize(
    ("right", "plain", "padded"),
    [
        (lambda subject, blas: blas, True, 0),
        (lambda subject, blas: blas and subject.padded, True, WIDE_RANK),
    ],
)
def test_adapter_takes_the_first_way_that_is_right(
    right: Callable[[Subject, bool], object], plain: bool, padded: int, trial_stub: dict[str, Any]
) -> None:
    trial_stub["answer"] = lambda gate, subject, blas: "passed" if right(subject, blas) else "crash"
    found = decided([ADAPTER], SUBJECT, TRIER)
    assert (found.plain_blas, found.padded) == (plain, padded)
    assert found.choices[ADAPTER] == (PADDED if padded else PLAIN_BLAS).partition(", ")[2]
    assert found.facts()[PADDED if padded else PLAIN_BLAS]["status"] == "passed"
    assert trial_stub["calls"][1][3:] == (True, True)  # with the environment of that BLAS
    treatment = treated_by(found, Treatment())
    assert (treatment.remedies, "adapter's why" in treatment.reason) == (1, True)
    worse = Treatment(remedies=2, reason="r")
    assert treated_by(found, worse) is worse


def test_run_that_has_left_the_library_already_is_filled_up_at_once(trial_stub: dict[str, Any]) -> None:
    trial_stub["answer"] = lambda gate, subject, blas: "passed" if subject.padded else "wrong"
    found = decided([ADAPTER], SUBJECT, replace(TRIER, plain_blas=True))
    assert found.padded == WIDE_RANK
    assert len(trial_stub["calls"]) == 2


@pytest.mark.parametrize("status", ["wrong", "untried"])
def test_adapter_that_is_right_in_no_way_ends_the_run(status: str, trial_stub: dict[str, Any]) -> None:
    trial_stub["answer"] = lambda gate, subject, blas: status if blas else "crash"
    with pytest.raises(TrainerError, match="RM528") as caught:
        decided([ADAPTER], SUBJECT, TRIER)
    assert PADDED in caught.value.why


def test_verdicts_are_kept_for_the_next_run(trial_stub: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    first = decided([NF4, COMPILE], SUBJECT, TRIER)
    trial_stub["answer"] = fails(NF4)
    second = decided([NF4, COMPILE], SUBJECT, TRIER)
    assert len(trial_stub["calls"]) == 1
    assert [each.status for each in second.verdicts] == [each.status for each in first.verdicts]
    assert all(each.cached for each in second.verdicts)
    decide.report(second)
    assert "2 kept" in capsys.readouterr().err


def test_report_has_a_line_for_each_that_failed_with_what_is_used(
    trial_stub: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    trial_stub["answer"] = lambda gate, subject, blas: {NF4: "wrong", CANARY: "absent"}.get(gate, "passed")
    decide.report(decided([NF4, CANARY, COMPILE], SUBJECT, TRIER))
    printed = capsys.readouterr()
    assert "nf4 failed: wrong: nf4's why; used: the weights dequantised on the host" in printed.err
    assert "canary absent: canary's why" in printed.err
    assert "gates   passed in" in printed.err
    assert '"event": "gates"' in printed.out


def test_gates_are_the_same_on_all_ranks(trial_stub: dict[str, Any]) -> None:
    trial_stub["answer"] = fails(NF4)
    config = TrainConfig.of(**LM, adapter="qlora", model=Path("m"))
    planned = {"raw": SMALL, "adapter": "qlora", "method": "sft", "rank": 8, "sequence": 64, "group": 4}
    found = decide.pass_gates(config, planned, CARD, Treatment(), Ranks())
    assert Gates.of(asdict(found)) == found
    assert found.dense_nf4


def test_run_without_gates_has_the_reason(trial_stub: dict[str, Any]) -> None:
    found = decide.pass_gates(TrainConfig.of(gates="off"), None, CARD, Treatment(), Ranks())
    assert (found.why_not, found.verdicts, trial_stub["calls"]) == ("--gates off", (), [])
