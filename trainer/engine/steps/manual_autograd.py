"""A step on the CPU without autograd: the same kernels that it would call, on memory that is allocated already.

A small network's step is a few microseconds of arithmetic; the rest is building and walking the graph, and fresh
memory. The order of operations and the layout of each operand are autograd's, so the result is the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from trainer.data.loading.placement import TensorPartition
from trainer.engine.steps.fused_adamw import LINE, FusedSteps, Hyper
from trainer.engine.training import Training
from trainer.models.losses import squared_error_sum

MOST = 64  # steps at a time: so long the loop cannot checkpoint, stop or look for NaN
GATHERED = 2**20  # bytes that stay in a core's cache
SUMMED = 2**14  # numbers at a time: torch lets threads share larger sums, which adds in another order

# The kernel itself: torch.ops calls it through a function in Python, at a tenth of the step's time.
threshold_backward = torch.ops.aten.threshold_backward.grad_input._op
Operation = Callable[[], object]


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
        return "hooks observe the network as it computes"
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
    """Return how many batches of `size` rows are gathered, and their losses summed, at once.

    More than one only where each then begins on a cache line, as it would in memory of its own: kernels may add in
    another order elsewhere, and a run that is resumed gathers other batches together.

    Args:
        size: rows of a batch.
        inputs: shape (rows, features).
        targets: shape (rows, outputs).
    """
    held = [value[0].nbytes * size for value in (inputs, targets)]
    most = min(MOST, GATHERED // sum(held), SUMMED // (size * targets[0].numel()))
    return 1 if any(each % LINE for each in held) else max(1, most)


class DirectSteps:
    """Steps over batches of one size."""

    most = MOST

    def __init__(self, training: Training) -> None:
        self.training, self.size = training, training.sampler.batch_size
        assert isinstance(training.train, TensorPartition)
        self.inputs, self.targets = training.train.inputs, training.train.targets
        self.ahead = at_once(self.size, self.inputs, self.targets)
        with torch.inference_mode():  # what is made in it needs no bookkeeping when it is written to
            self._make_room()
            batches = zip(*(each.split(self.size) for each in (self.rows, self.batch_targets, self.gaps)), strict=True)
            self.batches = [list(self._step(*batch)) for batch in batches]

    def _make_room(self) -> None:
        count, model = self.ahead * self.size, self.training.model
        self.rows, self.batch_targets, self.gaps = (
            like.new_empty(count, *like.shape[1:]) for like in (self.inputs, self.targets, self.targets)
        )
        self.optimizer = FusedSteps([value.detach() for value in model.parameters()])  # weight, bias, weight, …
        weights, gradients = self.optimizer.weights.views, self.optimizer.gradients.views
        pairs = zip(weights[::2], weights[1::2], gradients[::2], gradients[1::2], strict=True)
        self.layers = [self._layer(*each) for each in pairs]
        self.scale = (2 * (self.inputs.new_tensor(1.0) / self.size)).numpy()  # of d(sum of squares / rows)

    def _layer(self, weight: Tensor, bias: Tensor, of_weight: Tensor, of_bias: Tensor) -> Layer:
        output, gradient = (weight.new_empty(self.size, len(weight)) for _ in range(2))
        return Layer(
            weight=weight,
            bias=bias,
            turned=weight.t(),
            output=output,
            gradient=gradient,
            turned_gradient=gradient.t(),
            of_weight=of_weight,
            of_bias=of_bias,
        )

    @torch.inference_mode()
    @np.errstate(all="ignore")
    def take(self, rows: Tensor, losses: Tensor) -> None:
        """Take a step for each batch of `rows` (steps * batch,), and put their losses in `losses` (steps,)."""
        step, chunk = self.optimizer, self.ahead * self.size
        step.begin(Hyper.of(self.training.optimizer))
        for numbers, place in zip(rows.split(chunk), losses.split(self.ahead), strict=True):
            torch.index_select(self.inputs, 0, numbers, out=self.rows[: len(numbers)])
            torch.index_select(self.targets, 0, numbers, out=self.batch_targets[: len(numbers)])
            for operations in self.batches[: len(place)]:
                for operation in operations:
                    operation()
                step.take()
            gaps = self.gaps[: len(numbers)].view(len(place), -1)
            torch.div(torch.sum(gaps * gaps, 1), self.size, out=place)
        step.end()

    def _step(self, inputs: Tensor, targets: Tensor, gaps: Tensor) -> Iterator[Operation]:
        """Yield all that leads from a batch to its gradients; numpy's subtraction costs a third of torch's."""
        value, last = inputs, self.layers[-1]
        for layer in self.layers:
            yield partial(np.copyto, layer.output.numpy(), layer.bias.numpy())
            yield partial(layer.output.addmm_, value, layer.turned)
            value = layer.output
            if layer is not last:
                yield value.relu_
        yield partial(np.subtract, last.output.numpy(), targets.numpy(), gaps.numpy())
        yield partial(np.multiply, gaps.numpy(), self.scale, last.gradient.numpy())
        yield from self._backward(inputs)

    def _backward(self, inputs: Tensor) -> Iterator[Operation]:
        for layer, below in zip(reversed(self.layers), [*reversed(self.layers[:-1]), None], strict=True):
            yield partial(torch.mm, layer.turned_gradient, below.output if below else inputs, out=layer.of_weight)
            yield partial(torch.sum, layer.gradient, 0, out=layer.of_bias)
            if below:
                yield partial(torch.mm, layer.gradient, layer.weight, out=below.gradient)
                yield partial(threshold_backward, below.gradient, below.output, 0, grad_input=below.gradient)
