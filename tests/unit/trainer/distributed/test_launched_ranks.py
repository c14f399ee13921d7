"""Ranks asked for under torchrun: a typed number that it did not start is refused, a recipe's is reported."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from trainer.distributed.launched_ranks import idle_ranks, require_ranks_of_launcher
from trainer.runtime.errors import TrainerError


@pytest.mark.parametrize(
    ("typed", "started", "refused"),
    [
        ("4", ("2", "2"), True),
        (4, ("8", "2"), True),
        ("2", ("8", "2"), False),
        ("8", ("8", "2"), False),
        ("1", ("2", "2"), False),
        ("auto", ("2", "2"), False),
        (None, ("2", "2"), False),
        ("4", None, False),
    ],
)
def test_typed_ranks_that_torchrun_did_not_start_are_refused(
    typed: object, started: tuple[str, str] | None, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"), ("0", *(started or ("", ""))), strict=True):
        monkeypatch.setenv(name, value) if started else monkeypatch.delenv(name, raising=False)
    with pytest.raises(TrainerError, match="RM500") if refused else nullcontext():
        require_ranks_of_launcher(typed)


def test_ranks_of_a_recipe_that_torchrun_did_not_start_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    sentences = {ranks: idle_ranks(ranks) for ranks in (1, 2, 4, 8, "auto")}
    assert [ranks for ranks, sentence in sentences.items() if sentence] == [2, "auto"]
    assert sentences[2] == ["--ranks 2 has no effect: torchrun started 8 rank(s)"]
