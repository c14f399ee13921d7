"""A whole step on the CPU without autograd: the very kernels that it would call, on memory that is there already.

A small network's step is a few microseconds of arithmetic; the rest is building and walking the graph, and fresh
memory. The order of operations and the layout of each operand are autograd's, so the result is the same to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainer.fused import FusedSteps, Hyper
from trainer.loop import Training
from trainer.microbatch import squared_error_sum

MOST = 64  # steps at a time: so long the loop cannot checkpoint, stop or look for NaN
LINE, GATHERED = 64, 2**20  # bytes: where torch's memory begins, and what stays in a core's cache
SUM = 2  # of aten's reductions: none, mean, sum

# The kernels themselves: torch.ops calls them through a function in Python, at a tenth of the step's time.
mse_loss = torch.ops.aten.mse_loss.default._op
mse_loss_backward = torch.ops.aten.mse_loss_backward.grad_input._op
threshold_backward = torch.ops.aten.threshold_backward.grad_input._op


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A linear layer and where its results go. Shapes: weight (out, in), bias (out,), the rest (rows, out)."""

    weight: Tensor
    bias: Tensor
    turned: Tensor  # (in, out), the weight seen the other way
    output: Tensor
    gradient: Tensor
    turned_gradient: Tensor  # (out, rows)
    of_weight: Tensor
    of_bias: Tensor


def why_not(training: Training) -> str | None:
    """Return why the network's gradients cannot be written down here, or None where they can."""
    model = training.model
    if training.device.type != "cpu":
        return f"the rows are on {training.device}"
    if training.precision.name not in ("fp32", "fp64"):
        return f"{training.precision.name} is autocast"
    if training.loss_sum is not squared_error_sum:
        return "the loss is not the squared error"
    if not is_plain_stack(model) or training.forward is not model:
        return "the network is not a plain stack of linear layers and ReLU"
    if any(each._forward_hooks or each._forward_pre_hooks or each._backward_hooks for each in model.modules()):
        return "somebody looks into the network as it computes"
    return None


def is_plain_stack(model: nn.Module) -> bool:
    """Return whether `model` is Linear, ReLU, Linear, …, Linear, all with bias and all weights trained."""
    if type(model) is not nn.Sequential or len(model) % 2 == 0:
        return False
    linear, relu = list(model)[::2], list(model)[1::2]
    whole = all(type(each) is nn.Linear and each.bias is not None for each in linear)
    return (
        whole and all(type(each) is nn.ReLU for each in relu) and all(each.requires_grad for each in model.parameters())
    )


def at_once(size: int, inputs: Tensor, targets: Tensor) -> int:
    """Return how many batches of `size` rows are gathered at once.

    More than one only where each then begins on a cache line, as it would in memory of its own: kernels may add in
    another order elsewhere, and a run that is resumed gathers other batches together.
    """
    held = [value[0].nbytes * size for value in (inputs, targets)]
    return 1 if any(each % LINE for each in held) else max(1, min(MOST, GATHERED // sum(held)))


class DirectSteps:
    """Steps over batches of one size."""

    most = MOST

    def __init__(self, training: Training) -> None:
        self.training, self.size = training, training.sampler.batch_size
        self.inputs, self.targets = training.train.inputs, training.train.targets
        like = self.inputs
        self.ahead = at_once(self.size, self.inputs, self.targets)
        self.rows = like.new_empty(self.ahead * self.size, *self.inputs.shape[1:])
        self.wanted = like.new_empty(self.ahead * self.size, *self.targets.shape[1:])
        self.batches = list(zip(self.rows.split(self.size), self.wanted.split(self.size), strict=True))
        self.layers = [self._layer(each) for each in training.model if isinstance(each, nn.Linear)]  # type: ignore[attr-defined]
        self.gradients = [value for layer in self.layers for value in (layer.of_weight, layer.of_bias)]
        self.seed = like.new_tensor(1.0) / self.size  # what autograd hands to the loss: d(sum / rows)

    def _layer(self, module: nn.Linear) -> Layer:
        weight, bias = module.weight.detach(), module.bias.detach()
        output, gradient = (weight.new_empty(self.size, len(weight)) for _ in range(2))
        return Layer(
            weight=weight,
            bias=bias,
            turned=weight.t(),
            output=output,
            gradient=gradient,
            turned_gradient=gradient.t(),
            of_weight=torch.empty_like(weight),
            of_bias=torch.empty_like(bias),
        )

    @torch.inference_mode()
    def take(self, rows: Tensor, losses: Tensor) -> None:
        """Take a step for each batch of `rows` (steps * batch,), and put their losses in `losses` (steps,)."""
        optimizer = FusedSteps(Hyper.of(self.training.optimizer), self.gradients)
        sums = []
        for numbers in rows.split(self.ahead * self.size):
            torch.index_select(self.inputs, 0, numbers, out=self.rows[: len(numbers)])
            torch.index_select(self.targets, 0, numbers, out=self.wanted[: len(numbers)])
            for inputs, targets in self.batches[: len(numbers) // self.size]:
                sums.append(self._forward(inputs, targets))
                self._backward(inputs, targets)
                optimizer.take()
        optimizer.end()
        torch.div(torch.stack(sums), self.size, out=losses)

    def _forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        value, last = inputs, self.layers[-1]
        for layer in self.layers:
            torch.addmm(layer.bias, value, layer.turned, out=layer.output)
            value = layer.output if layer is last else layer.output.relu_()
        total: Tensor = mse_loss(last.output, targets, SUM)
        return total

    def _backward(self, inputs: Tensor, targets: Tensor) -> None:
        last = self.layers[-1]
        mse_loss_backward(self.seed, last.output, targets, SUM, grad_input=last.gradient)
        for layer, below in zip(reversed(self.layers), [*reversed(self.layers[:-1]), None], strict=True):
            torch.mm(layer.turned_gradient, below.output if below else inputs, out=layer.of_weight)
            torch.sum(layer.gradient, 0, out=layer.of_bias)
            if below:
                torch.mm(layer.gradient, layer.weight, out=below.gradient)
                threshold_backward(below.gradient, below.output, 0, grad_input=below.gradient)
