"""Callbacks: hooks of the loop, in the order in which they are called, and the user's own."""

from trainer.engine.callbacks.callback import Callback, TakenSteps

__all__ = ["Callback", "TakenSteps"]
