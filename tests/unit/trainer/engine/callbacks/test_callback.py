"""The base class of callbacks."""

from __future__ import annotations

from trainer.engine.callbacks import Callback
from trainer.engine.callbacks.callback import overrides
from trainer.engine.callbacks.callback_list import HOOKS, Callbacks


def test_base_class_has_no_effect_in_any_hook() -> None:
    assert not any(overrides(Callback(), hook) for hook in HOOKS)
    assert all(not hooks for hooks in Callbacks([Callback()])._hooks.values())
