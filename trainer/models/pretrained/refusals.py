"""Refusals of values of config.json that the built-in decoder does not compute."""

from __future__ import annotations

from typing import Any

from trainer.runtime.errors import TrainerError


class NotBuiltInError(TrainerError):
    """RM707 for a value that is sound and not built in, with which transformers' own class computes the model."""


def unsupported(key: str, value: Any) -> TrainerError:
    """Return RM707 for a value that nothing here computes."""
    return TrainerError("RM707", what=f"{key} = {value!r} is not implemented", where="config.json")


def not_built_in(key: str, value: Any) -> TrainerError:
    """Return RM707 for a value with which transformers' own class computes the model."""
    advice = "Install transformers: its own class then computes the model, see docs/language-models.md, Other families."
    return NotBuiltInError("RM707", what=f"{key} = {value!r} is not built in", where="config.json", next=advice)
