"""More ranks than processors: stated for a few, refused for many, before any process is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainer import cli
from trainer.distributed.launch_size import card_nodes, require_processors
from trainer.runtime.errors import TrainerError


@pytest.mark.parametrize(
    ("ranks", "device", "processors", "cards"),
    [(2, "cpu", 2, 0), (2, "auto", 2, 0), (8, "auto", 2, 8), (8, "cuda", 2, 8), (64, "auto", 96, 0), (1, "auto", 1, 0)],
)
def test_ranks_with_a_processor_or_card_each_start_without_a_word(
    ranks: int, device: str, processors: int, cards: int
) -> None:
    assert require_processors(ranks, device, processors=processors, cards=cards) == ""


@pytest.mark.parametrize(("ranks", "processors", "cards"), [(3, 2, 0), (8, 2, 1), (4, 1, 0)])
def test_ranks_that_share_processors_are_stated(ranks: int, processors: int, cards: int) -> None:
    note = require_processors(ranks, "auto", processors=processors, cards=cards)
    assert note.startswith(f"{ranks} ranks on {processors} processor(s), device nodes of {cards} card(s)")
    assert f"--ranks {processors} is faster" in note


@pytest.mark.parametrize(("device", "cards"), [("auto", 0), ("cpu", 0), ("cpu", 64), ("auto", 8), ("cuda", 1)])
def test_sixty_four_ranks_on_two_processors_are_refused(device: str, cards: int) -> None:
    with pytest.raises(TrainerError, match="RM563") as caught:
        require_processors(64, device, processors=2, cards=cards)
    assert "64 ranks on 2 processor(s)" in caught.value.what
    assert "--ranks 2" in caught.value.next


def test_ranks_beyond_the_processors_are_refused_before_the_launcher_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def launch(*_: object, **__: object) -> int:
        raise AssertionError("ranks were started")

    monkeypatch.setattr(cli, "launch", launch)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert cli.main(["train", "--ranks", "64", "--device", "cpu"]) == 2
    assert capsys.readouterr().err.startswith("RM563")


def test_device_nodes_of_both_makers_are_counted(tmp_path: Path) -> None:
    (tmp_path / "dri").mkdir()
    for name in ("dri/renderD128", "dri/renderD129", "dri/card0", "nvidia0", "nvidiactl", "kfd"):
        (tmp_path / name).touch()
    assert card_nodes(tmp_path) == 3
