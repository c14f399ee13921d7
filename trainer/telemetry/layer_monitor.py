"""Find the first layer whose output, or parameter whose gradient, is not finite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainer.data.loading.batch import Values, tensors


@dataclass(frozen=True, kw_only=True)
class NonFiniteSource:
    """The first value that was not finite: `what` is an output of a layer, a parameter's gradient, inputs or loss."""

    what: str
    name: str

    @property
    def place(self) -> str:
        """The suspect as part of a sentence."""
        return f"the {self.what} {self.name}".rstrip()


class LayerMonitor:
    """Sums of each leaf layer's output, on the device: a sum is finite unless one of its terms is not.

    Sums are in float32, or float64 for float64: 16-bit outputs cannot overflow in them.
    """

    def __init__(self, model: nn.Module) -> None:
        leaves = [(name, module) for name, module in model.named_modules() if not any(module.children())]
        self.names = [f"{name or 'model'} ({type(module).__name__})" for name, module in leaves]
        self._modules = [module for _, module in leaves]
        self.sums: dict[int, Tensor] = {}

    @contextmanager
    def watching(self) -> Iterator[LayerMonitor]:
        """Look at every forward pass inside the block; no pass is delayed by it."""
        handles = [module.register_forward_hook(self._hook(index)) for index, module in enumerate(self._modules)]
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()

    def first_bad(self) -> str | None:
        """Return the first layer, in the order of the computation, whose output was not finite; waits for the device.

        A layer that was not run has no result.
        """
        if not self.sums:
            return None
        finite = torch.isfinite(torch.stack(list(self.sums.values()))).tolist()
        return next((self.names[index] for index, good in zip(self.sums, finite, strict=True) if not good), None)

    def _hook(self, index: int):  # type: ignore[no-untyped-def]
        def hook(_module: nn.Module, _inputs: object, output: object) -> None:
            if isinstance(output, Tensor) and output.is_floating_point():
                total = output.detach().sum(dtype=torch.float64 if output.dtype == torch.float64 else torch.float32)
                # A batch in pieces: one bad piece makes the sum of all bad.
                self.sums[index] = self.sums[index] + total if index in self.sums else total

        return hook


def bad_gradient(model: nn.Module) -> str | None:
    """Return the first parameter, in the order of the backward pass, whose gradient is not finite; waits."""
    named = [(name, parameter.grad) for name, parameter in model.named_parameters() if parameter.grad is not None]
    return next((name for name, gradient in reversed(named) if not torch.isfinite(gradient).all()), None)


def non_finite_source(
    monitor: LayerMonitor, model: nn.Module, inputs: Values, loss: object, *, scaled: bool = False
) -> NonFiniteSource | None:
    """Return what first was not finite in a step that `monitor` saw: inputs, a layer's output, loss, or a gradient.

    Gradients that are `scaled` (fp16) may overflow: such a step is skipped, and no harm done.

    Args:
        model: the network that was run.
        inputs: inputs of the step.
        loss: the step's loss, a tensor or a number.
        scaled: gradients are scaled (fp16) and may overflow.
    """
    if not all(torch.isfinite(value).all() for value in tensors(inputs)):
        return NonFiniteSource(what="inputs of the batch", name="")
    if (layer := monitor.first_bad()) is not None:
        return NonFiniteSource(what="output of layer", name=layer)
    if isinstance(loss, Tensor) and not torch.isfinite(loss).all():
        return NonFiniteSource(what="loss of finite outputs", name="")
    if not scaled and (parameter := bad_gradient(model)) is not None:
        return NonFiniteSource(what="gradient of parameter", name=parameter)
    return None
