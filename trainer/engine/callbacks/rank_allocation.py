"""AdaLoRA's choice of ranks as a callback of the loop, after each optimizer step."""

from __future__ import annotations

from typing import Any

from torch import nn

from trainer.distributed.collectives import Ranks
from trainer.engine.callbacks.callback import Callback, TakenSteps
from trainer.models.adapters.adalora import RankBudget
from trainer.runtime.errors import TrainerError


class RankAllocation(Callback):
    """Has peft weigh the step's gradients, which the loop drops at the next step, and give ranks up."""

    changes_results = True
    all_ranks = True

    def __init__(self, decoder: Any) -> None:
        self.decoder, self.skipped = decoder, 0

    def on_train_begin(self, run: Any) -> None:
        """Note how many steps were skipped before."""
        self.skipped = run.state.skipped

    def on_step_end(self, run: Any, taken: TakenSteps) -> None:
        """Allocate. Gradients of a step that an overflow of fp16 cost are not finite, and count as 0."""
        if run.state.skipped > self.skipped:
            self.skipped = run.state.skipped
            for weight in self.decoder.parameters():
                if weight.grad is not None:
                    weight.grad.zero_()
        self.decoder.budget.allocate(self.decoder.causal.base_model, run.state.step)


def allocation_of(model: nn.Module, ranks: Ranks) -> list[Callback]:
    """Return the callback of a network whose adapter's ranks change in training; none of another.

    Raises:
        TrainerError: RM563 where no rank holds whole gradients.
    """
    decoder = getattr(model, "decoder", None)
    if not isinstance(getattr(decoder, "budget", None), RankBudget):
        return []
    if ranks.lockstep:
        what = "AdaLoRA decides from whole gradients, and here each rank holds a part"
        raise TrainerError("RM563", what=what, next="Use --parallel ddp.")
    return [RankAllocation(decoder)]
