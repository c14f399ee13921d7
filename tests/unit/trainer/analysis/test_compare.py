from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.analysis.compare import Step, divergence_of, number
from trainer.cli import main
from trainer.engine.batch_hash import LINK_BYTES, HashChain

BATCHES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=12)


def chain(batches: list[list[int]]) -> HashChain:
    made = HashChain()
    for batch in batches:
        made.add(torch.tensor(batch))
    return made


@given(BATCHES, BATCHES)
def test_chains_agree_up_to_the_first_batch_that_differs(one: list[list[int]], other: list[list[int]]) -> None:
    equal = 0
    while equal < min(len(one), len(other)) and one[equal] == other[equal]:
        equal += 1
    first, second = chain(one), chain(other)
    assert first.links[: equal * LINK_BYTES] == second.links[: equal * LINK_BYTES]
    after = slice(equal * LINK_BYTES, (equal + 1) * LINK_BYTES)
    if equal < min(len(one), len(other)):
        assert first.links[after] != second.links[after]
    assert (first.head == second.head) == (one == other)


def write_run(folder: Path, links: list[str], losses: list[float], first_step: int = 1) -> Path:
    folder.mkdir()
    bits = "".join(struct.pack(">f", loss).hex() for loss in losses)
    line = {"epoch": 1, "first_step": first_step, "links": "".join(links), "losses": bits, "head": ""}
    (folder / "batches.jsonl").write_text(json.dumps(line) + "\n")
    return folder


def outcome(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_equal_runs_are_equal_as_far_as_both_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write_run(tmp_path / "one", ["aaaaaaaa", "bbbbbbbb"], [1, 2])
    two = write_run(tmp_path / ".two.partial", ["aaaaaaaa"], [1])
    assert main(["compare", str(one), str(tmp_path / "two")]) == 0
    event, words = outcome(capsys)
    assert (event["same"], event["steps"], event["step"]) == (True, 1, None)
    assert words.startswith("equal  all 1 steps")
    assert two.exists()


@pytest.mark.parametrize(
    ("links", "losses", "step", "what"),
    [
        (["aaaaaaaa", "cccccccc", "dddddddd"], [1, 2, 4], 2, "batch"),
        (["aaaaaaaa", "bbbbbbbb", "dddddddd"], [1, 2, 3.5], 3, "loss"),
    ],
)
def test_first_difference_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], links: list[str], losses: list[float], step: int, what: str
) -> None:
    one = write_run(tmp_path / "one", ["aaaaaaaa", "bbbbbbbb", "dddddddd"], [1, 2, 3])
    two = write_run(tmp_path / "two", links, losses)
    assert main(["compare", str(one), str(two)]) == 1
    event, words = outcome(capsys)
    assert (event["same"], event["step"], event["epoch"], event["what"]) == (False, step, 1, what)
    assert f"diverged at step {step}, epoch 1" in words


def test_last_bit_of_a_loss_counts() -> None:
    one, other = (Step(step=1, epoch=1, link="aaaaaaaa", loss=loss) for loss in ("3f800000", "3f800001"))
    divergence = divergence_of([one], [other])
    assert divergence.step == 1
    assert divergence.losses == (1.0, number("3f800001"))


@pytest.mark.parametrize("content", [None, "no json\n", "{}\n", "3\n"])
def test_run_without_a_log_cannot_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    one = write_run(tmp_path / "one", ["aaaaaaaa"], [1])
    (tmp_path / "two").mkdir()
    if content is not None:
        (tmp_path / "two" / "batches.jsonl").write_text(content)
    assert main(["compare", str(one), str(tmp_path / "two")]) == 2
    assert outcome(capsys)[0]["code"] == "RM556"
