"""What a rank leaves for its launcher, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer import cli
from trainer.distributed import refusal
from trainer.runtime.errors import CATALOG, TrainerError


def rank(path: Path, attempt: str = "0") -> dict[str, str]:
    return {refusal.FILE: str(path), "RANK": "1", refusal.ATTEMPT: attempt}


def test_first_refusal_stays_and_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "refusal.json"
    first = TrainerError("RM563", what="3 layers cannot be split over 4 ranks", why="why", next="next")
    refusal.leave(first, rank(path))
    refusal.leave(TrainerError("RM529", what="another"), rank(path))
    found = refusal.left(path)
    assert found is not None
    assert found.parts() == first.parts()


@pytest.mark.parametrize("code", ["RM521", "RM543", "RM553", "RM554", "RM560", "RM561", "RM568", "RM569", "RM599"])
def test_error_that_another_attempt_may_mend_is_not_left(tmp_path: Path, code: str) -> None:
    refusal.leave(TrainerError(code, what="what"), rank(tmp_path / "refusal.json"))
    assert not list(tmp_path.iterdir())


def test_later_attempt_or_plain_process_leaves_none(tmp_path: Path) -> None:
    path, error = tmp_path / "refusal.json", TrainerError("RM563", what="what")
    refusal.leave(error, rank(path, attempt="1"))
    refusal.leave(error, {refusal.FILE: str(path)})
    refusal.leave(error, {"RANK": "0"})
    assert not path.exists()
    assert refusal.left(path) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"code": "RM000", "what": ""}', "\0"])
def test_file_of_another_content_counts_for_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "refusal.json"
    path.write_text(content)
    assert refusal.left(path) is None


def test_lasting_codes_are_in_the_catalog() -> None:
    assert set(CATALOG) >= refusal.LASTING


def test_command_line_of_a_rank_leaves_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "refusal.json"
    for name, value in rank(path).items():
        monkeypatch.setenv(name, value)
    assert cli.main(["train", "--parallel", "tp"]) == 2
    found = refusal.left(path)
    assert found is not None
    assert found.code == "RM500"
