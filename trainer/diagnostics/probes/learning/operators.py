"""The operators whose gradients are checked: a name, a function of fp64 tensors, and the shapes of its inputs.

Shapes are small and odd: a check calls the function twice for each element. Inputs are drawn so that no element is at
a kink (relu, maximum, pooling), where a difference quotient is not the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    Function = Callable[..., torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A differentiable function and the shapes of its inputs; `positive` inputs are between 0.5 and 1.5."""

    name: str
    function: Function
    shapes: tuple[tuple[int, ...], ...]
    positive: bool = False


def operators(device: str) -> list[Operator]:
    """Return the operators that this torch has, for tensors on `device`.

    Args:
        device: device of torch, such as "cuda" or "cpu"; index tensors are made there.
    """
    made = [*_products(), *_norms(device), *_activations(), *_losses(device), *_reductions(), *_indexing(device)]
    return [operator for operator in made if operator is not None]


def _products() -> list[Operator]:
    import torch
    from torch.nn import functional

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return [
        Operator(name="linear", function=functional.linear, shapes=((5, 7), (3, 7), (3,))),
        Operator(name="matmul batched", function=torch.matmul, shapes=((2, 3, 5), (2, 5, 4))),
        Operator(
            name="einsum", function=lambda a, b: torch.einsum("bij,bkj->bik", a, b), shapes=((2, 3, 4), (2, 5, 4))
        ),
        Operator(name="conv1d", function=functional.conv1d, shapes=((2, 3, 7), (4, 3, 3), (4,))),
        Operator(
            name="conv2d",
            function=lambda x, w, b: functional.conv2d(x, w, b, stride=2, padding=1),
            shapes=((2, 2, 5, 5), (3, 2, 3, 3), (3,)),
        ),
        Operator(name="conv transposed", function=functional.conv_transpose2d, shapes=((1, 3, 3, 3), (3, 2, 2, 2))),
        Operator(name="attention", function=attention, shapes=((1, 2, 4, 3), (1, 2, 4, 3), (1, 2, 4, 3))),
        Operator(name="bilinear resize", function=_resize, shapes=((1, 2, 3, 3),)),
    ]


def _resize(x: torch.Tensor) -> torch.Tensor:
    from torch.nn import functional

    return functional.interpolate(x, size=(5, 4), mode="bilinear", align_corners=False)


def _norms(device: str) -> list[Operator]:
    import torch
    from torch.nn import functional

    def batch_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        mean, variance = (torch.full((3,), value, dtype=x.dtype, device=device) for value in (0.0, 1.0))
        return functional.batch_norm(x, mean, variance, weight, bias, training=True)

    made = [
        Operator(
            name="layer norm",
            function=lambda x, w, b: functional.layer_norm(x, (7,), w, b),
            shapes=((4, 7), (7,), (7,)),
        ),
        Operator(
            name="group norm",
            function=lambda x, w, b: functional.group_norm(x, 2, w, b),
            shapes=((2, 4, 3), (4,), (4,)),
        ),
        Operator(name="batch norm", function=batch_norm, shapes=((5, 3), (3,), (3,))),
    ]
    if hasattr(functional, "rms_norm"):  # since torch 2.4
        made.append(
            Operator(name="rms norm", function=lambda x, w: functional.rms_norm(x, (7,), w), shapes=((4, 7), (7,)))
        )
    return made


def _activations() -> list[Operator]:
    import torch
    from torch.nn import functional

    plain: dict[str, Function] = {
        "gelu": functional.gelu,
        "silu": functional.silu,
        "relu": functional.relu,
        "leaky relu": functional.leaky_relu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "softplus": functional.softplus,
    }
    made = [Operator(name=name, function=function, shapes=((3, 5),)) for name, function in plain.items()]
    made.append(Operator(name="softmax", function=lambda x: functional.softmax(x, -1), shapes=((3, 5),)))
    made.append(Operator(name="log softmax", function=lambda x: functional.log_softmax(x, -1), shapes=((3, 5),)))
    return made


def _losses(device: str) -> list[Operator]:
    import torch
    from torch.nn import functional

    labels = torch.tensor([0, 3, 1, 2], device=device)
    return [
        Operator(name="cross entropy", function=lambda x: functional.cross_entropy(x, labels), shapes=((4, 5),)),
        Operator(name="squared error", function=functional.mse_loss, shapes=((4, 3), (4, 3))),
        Operator(name="smooth l1", function=functional.smooth_l1_loss, shapes=((4, 3), (4, 3))),
    ]


def _reductions() -> list[Operator]:
    import torch
    from torch.nn import functional

    return [
        Operator(name="sum of a dimension", function=lambda x: x.sum(1), shapes=((3, 5),)),
        Operator(name="variance", function=lambda x: x.var(1), shapes=((3, 5),)),
        Operator(name="logsumexp", function=lambda x: x.logsumexp(1), shapes=((3, 5),)),
        Operator(name="cumulative sum", function=lambda x: x.cumsum(1), shapes=((3, 5),)),
        Operator(name="product", function=lambda x: x.prod(1), shapes=((3, 4),), positive=True),
        Operator(
            name="square root and logarithm", function=lambda x: x.sqrt() * x.log(), shapes=((3, 5),), positive=True
        ),
        Operator(name="maximum", function=torch.maximum, shapes=((3, 5), (3, 5))),
        Operator(name="max pooling", function=lambda x: functional.max_pool2d(x, 2), shapes=((1, 2, 4, 4),)),
        Operator(name="average pooling", function=lambda x: functional.avg_pool2d(x, 2), shapes=((1, 2, 4, 4),)),
    ]


def _indexing(device: str) -> list[Operator]:
    import torch
    from torch.nn import functional

    rows = torch.tensor([2, 0, 2, 1], device=device)  # a row twice: its gradients add up
    chosen = torch.tensor([[0, 2], [1, 1], [2, 0]], device=device)

    def scatter(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.index_add(0, rows, y)

    return [
        Operator(name="embedding", function=lambda w: functional.embedding(rows, w), shapes=((3, 4),)),
        Operator(name="gather", function=lambda x: x.gather(1, chosen), shapes=((3, 3),)),
        Operator(name="index add", function=scatter, shapes=((3, 4), (4, 4))),
        Operator(
            name="join and split", function=lambda x, y: torch.cat([x, y], 1).chunk(2)[0], shapes=((4, 2), (4, 3))
        ),
    ]
