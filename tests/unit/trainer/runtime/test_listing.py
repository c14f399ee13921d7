from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainer.runtime import memory_limit
from trainer.runtime.listing import matching


def gone(path: object) -> None:
    raise FileNotFoundError(2, "No such file or directory", str(path))


def test_listing_sorts_what_matches_at_any_depth(tmp_path: Path) -> None:
    for name in ("b/x", "a/x", "a/y"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert matching(tmp_path, "*/x") == [tmp_path / "a/x", tmp_path / "b/x"]
    assert matching(tmp_path / "none", "*") == []


def test_listing_of_what_disappears_meanwhile_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a kernel answers for a process that ends between the look at its folder and the list of it."""
    monkeypatch.setattr(os, "scandir", gone)
    monkeypatch.setattr(os, "listdir", gone)
    with pytest.raises(FileNotFoundError):
        os.scandir(tmp_path)
    assert matching(tmp_path, "*/x") == []
    assert list(memory_limit.descendants(os.getpid())) == []
