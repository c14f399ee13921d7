"""`python -m trainer`, but on rank 1 the memory runs out INJECTED: for more than `ROWS` rows at a time from a step on.

A stand-in for a card that is full: torch's own class is raised from within a layer's forward or its backward.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from torch import Tensor, nn

from trainer.cli import main
from trainer.device.memory import OutOfMemory
from trainer.engine.training import Training
from trainer.run.phases import assemble

ROWS, STEP = 4, 5


def made_short(training: Training, where: str) -> None:
    layer = [each for each in training.model.modules() if isinstance(each, nn.Linear)][-1]

    def look(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if not (module.training and len(output) > ROWS and training.state.step + 1 >= STEP):
            return
        if where == "forward":
            raise OutOfMemory("HIP out of memory. Tried to allocate 2.00 GiB")
        output.register_hook(fail)

    def fail(gradient: Tensor) -> None:
        raise OutOfMemory("HIP out of memory. Tried to allocate 2.00 GiB")

    layer.register_forward_hook(look)


def training_of(*inputs: Any, **named: Any) -> Training:
    made = real(*inputs, **named)
    if os.environ["RANK"] == "1":
        made_short(made, os.environ["SHORT_MEMORY"])
    return made


if __name__ == "__main__":
    real, assemble.training_of = assemble.training_of, training_of
    sys.exit(main())
