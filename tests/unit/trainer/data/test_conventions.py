"""Conventions of profiles that make no sense are refused."""

from __future__ import annotations

import pytest

from trainer.data.conventions import ProfileConventions
from trainer.runtime.errors import TrainerError


@pytest.mark.parametrize("wrong", [{"tick": 0.0}, {"row_ticks": 0}, {"value_share": 0}, {"expansion": "three"}])
def test_wrong_conventions_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(TrainerError, match="RM500"):
        ProfileConventions(**wrong)  # type: ignore[arg-type]
