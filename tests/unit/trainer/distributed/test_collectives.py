"""Two ranks on the CPU over gloo: the same questions go to two cards in tests/gpu."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from trainer.distributed.collectives import Ranks
from trainer.runtime.errors import TrainerError

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("ranks") / "answers.json"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "tests/fixtures/two_ranks.py", "cpu", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[dict[str, Any]] = json.loads(path.read_text())
    assert [answer["world_size"] for answer in found] == [2, 2]
    return found


def test_two_ranks_make_the_update_of_one(answers: list[dict[str, Any]]) -> None:
    assert all(answer["off_by"] <= 1e-12 for answer in answers)


def test_run_on_two_ranks_resumes_bit_identical(answers: list[dict[str, Any]]) -> None:
    assert all(answer["resumed_is_identical"] for answer in answers)


def test_memory_that_runs_out_on_one_rank_makes_both_cut_smaller(answers: list[dict[str, Any]]) -> None:
    assert all(answer["out_of_memory_on_rank_1_is_identical"] for answer in answers)


def test_batches_that_grow_on_two_ranks_resume_bit_identical(answers: list[dict[str, Any]]) -> None:
    assert all(answer["growing_batches_go_on_identically"] for answer in answers)


def test_measuring_by_steps_on_two_ranks_resumes_bit_identical(answers: list[dict[str, Any]]) -> None:
    assert all(answer["measured_steps_go_on_identically"] for answer in answers)


def test_tokens_on_two_ranks_make_the_update_of_one(answers: list[dict[str, Any]]) -> None:
    assert all(answer["tokens_off_by"] <= 1e-12 for answer in answers)


def test_ranks_all_hold_the_same_weights(answers: list[dict[str, Any]]) -> None:
    assert all(answer["ranks_agree"] for answer in answers)


def test_world_of_one_needs_no_vote() -> None:
    alone = Ranks()
    assert alone.is_main
    assert alone.any_rank(True, False) == (True, False)
    assert alone.run_on_main(lambda: 3) == 3
    assert alone.gather("a") == ["a"]


def test_error_of_the_leader_is_everybodys() -> None:
    def refuse() -> NoReturn:
        raise TrainerError("RM540", what="there is a run called one", where="here")

    with pytest.raises(TrainerError, match="RM540") as caught:
        Ranks().run_on_main(refuse)
    assert (caught.value.what, caught.value.where) == ("there is a run called one", "here")
