"""What `--ranks auto` comes to: the rule on two rates, what is not measured, and a run that is the one asked for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.left_out import long
from trainer.cli import main, parse
from trainer.config.recipe import resolve
from trainer.run.rank_choice import choice
from trainer.run.rank_choice.choice import RankChoice, Trial
from trainer.runtime.child_process import Outcome

TWO = {"cards": 2, "stand_in": False}


def rate(ranks: int, rows: float, **more: Any) -> dict[str, Any]:
    return {"ranks": ranks, "batch_size": 32, "rows_per_second": rows, "step": "eager", **more}


def ended(cards: dict[str, Any] | None = None, found: dict[str, Any] | None = None, code: str = "") -> Trial:
    return Trial(cards=cards, rate=found, fault=f"{code} it ended" if code else "", code=code, seconds=1.0)


@pytest.mark.parametrize(
    ("one", "two", "ranks"),
    [(100.0, 110.0, 2), (100.0, 109.9, 1), (100.0, 40.0, 1), (22_871.0, 1_800.0, 1), (1.0, 1.95, 2)],
)
def test_cards_are_taken_together_from_the_stated_margin_on(one: float, two: float, ranks: int) -> None:
    found = choice.decided(ended(TWO, rate(1, one)), ended(None, rate(2, two)), 2)
    assert (found.ranks, found.margin, found.stand_in) == (ranks, 1.1, False)
    assert (found.one, found.all) == (rate(1, one), rate(2, two))
    assert "1.1" in found.reason


def test_failed_trials_leave_what_worked() -> None:
    none, memory = ended(TWO, code="RM561"), ended(TWO, code="RM521")
    assert choice.verdict(ended(TWO, rate(1, 5.0)), none, 2) == (1, "2 ranks came to no figure: RM561 it ended")
    assert choice.verdict(memory, ended(None, rate(2, 5.0)), 2)[0] == 2
    assert memory.too_large
    assert not none.too_large


def test_larger_batch_is_advice_where_it_gains_and_never_taken() -> None:
    larger = rate(2, 190.0) | {"batch_size": 64}
    found = choice.decided(ended(TWO, rate(1, 100.0)), ended(None, rate(2, 90.0, larger=larger)), 2)
    assert found.ranks == 1
    assert "--batch-size 64 --ranks 2" in found.reason
    slow = choice.decided(
        ended(TWO, rate(1, 100.0)), ended(None, rate(2, 90.0, larger=larger | {"rows_per_second": 1})), 2
    )
    assert "--batch-size" not in slow.reason


def test_stand_in_is_named() -> None:
    found = choice.decided(ended({"cards": 2, "stand_in": True}, rate(1, 9.0)), ended(None, rate(2, 1.0)), 2)
    assert found.stand_in
    assert "no card was measured" in found.reason


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["train", "--ranks", "auto", "--epochs", "2"], ["train", "--epochs", "2"]),
        (["train", "--ranks=auto"], ["train"]),
        (["train", "--set", "ranks.ranks=auto", "--set=run.seed=1"], ["train", "--set=run.seed=1"]),
        (["train", "--set=ranks.ranks=auto", "--set", "ranks.comms=gloo"], ["train", "--set", "ranks.comms=gloo"]),
        (["train", "--data", "--ranks.csv"], ["train", "--data", "--ranks.csv"]),
    ],
)
def test_number_of_ranks_is_taken_out_of_a_command_line(words: list[str], left: list[str]) -> None:
    assert choice.without_ranks(words) == left


@pytest.mark.parametrize("words", [["--ranks", "auto"], ["--set", "ranks.ranks=auto"], ["--nproc_per_node=auto"]])
def test_settled_command_line_is_that_of_the_number(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.cli import with_ranks_resolved

    monkeypatch.setattr(choice, "choose", lambda *_: RankChoice(ranks=3, reason="it is"))
    typed = ["train", "--output", str(tmp_path), *[word.replace("_", "-") for word in words]]
    given = {name: value for name, value in parse(typed).items() if name != "command"}
    found, config = with_ranks_resolved(typed, given)
    direct = resolve({"output": tmp_path, "ranks": 3})
    assert config.having(rank_choice=None) == direct
    assert json.loads(config.provenance.rank_choice or "")["ranks"] == 3
    assert json.loads(capsys.readouterr().out)["ranks"] == 3
    assert parse(found)["ranks"] == 3


def outcome(stdout: str, **more: Any) -> Outcome:
    return Outcome(**{"returncode": 0, "timed_out": False, "stdout": stdout, "stderr": "", "seconds": 2.0} | more)


def test_trial_is_read_from_its_events_alone() -> None:
    lines = [
        '{"event": "rank-trial-cards", "cards": 2}',
        "NCCL says hello",
        "{}",
        '{"event": "rank-trial-rate", "ranks": 1}',
    ]
    found = choice.read(outcome("\n".join(lines)), 60)
    assert (found.cards, found.rate) == ({"cards": 2}, {"ranks": 1})
    error = '{"event": "error", "code": "RM521", "what": "2 GiB more"}'
    assert choice.read(outcome(error, returncode=2), 60).fault == "RM521 2 GiB more"
    assert "60 s" in choice.read(outcome("", timed_out=True, returncode=-9), 60).fault


def test_machine_with_one_card_is_named_and_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def trial(_: Any, ranks: int, *__: Any, **___: Any) -> Trial:
        calls.append(ranks)
        return ended({"cards": 1, "why": "one card is here: SIMULATED (gfx1100)"})

    monkeypatch.setattr(choice, "trial", trial)
    found = choice.choose(["train"], resolve({"output": tmp_path / "new" / "er", "ranks": "auto"}))
    assert (found.ranks, found.one, found.all, calls) == (1, None, None, [1])
    assert found.reason == "one card is here: SIMULATED (gfx1100); nothing was measured"
    assert list(tmp_path.iterdir()) == []


def test_error_of_the_data_ends_the_choice_before_a_second_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(choice, "trial", lambda _, ranks, *__, **___: calls.append(ranks) or ended(TWO, code="RM510"))
    found = choice.choose(["train"], resolve({"output": tmp_path, "ranks": "auto"}))
    assert (found.ranks, calls) == (1, [1])
    assert "RM510" in found.reason


def test_unfinished_run_keeps_its_ranks_as_far_as_cards_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".one.partial").mkdir()
    (tmp_path / ".one.partial" / "run.json").write_text(json.dumps({"world_size": 4}))
    looked: list[bool] = []

    def trial(*_: Any, look: bool = False, **__: Any) -> Trial:
        looked.append(look)
        return ended({"cards": 2, "stand_in": False})

    monkeypatch.setattr(choice, "trial", trial)
    found = choice.choose(["train"], resolve({"output": tmp_path, "ranks": "auto", "resume": "auto"}))
    assert (found.ranks, found.one, looked) == (2, None, [True])
    assert "trained by 4" in found.reason


def test_unfinished_run_on_a_cpu_keeps_its_ranks() -> None:
    found = choice.kept(4, ended({"cards": 2, "stand_in": True}))
    assert (found.ranks, "can be started" in found.reason) == (4, False)


def model_of(run: Path) -> dict[str, str]:
    return {
        name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in ("model.safetensors", "metrics.jsonl")
    }


@long
@pytest.mark.usefixtures("torch_as_before")
def test_run_by_auto_has_the_bytes_of_the_run_by_its_number_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two gloo ranks on the CPU stand in for cards; two trials in processes of their own."""
    monkeypatch.setenv("TRAINER_RANK_TRIAL_SECONDS", "0.2")
    common = ["train", "--device", "cpu", "--epochs", "2", "--seed", "5", "--output", str(tmp_path)]
    assert main([*common, "--ranks", "auto", "--run", "auto"]) == 0
    record = json.loads((tmp_path / "auto" / "metadata.json").read_text())
    found = record["rank_choice"]
    assert found["stand_in"] is True
    assert found["one"]["rows_per_second"] > 0
    assert found["all"]["rows_per_second"] > 0
    assert (found["one"]["ranks"], found["all"]["ranks"], found["all"]["comms"]) == (1, 2, "gloo")
    assert found["one"]["batch_size"] == found["all"]["batch_size"] == record["config"]["batch_size"]
    assert record["config"]["ranks"] == found["ranks"]
    assert main([*common, "--ranks", str(found["ranks"]), "--run", "told"]) == 0
    assert model_of(tmp_path / "auto") == model_of(tmp_path / "told")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["auto", "told"]
    recipes = [(tmp_path / name / "recipe.yaml").read_text() for name in ("auto", "told")]
    assert recipes[0] == recipes[1]
