"""Low-rank adaptation (Hu et al. 2021, arXiv 2106.09685) and its rank-stabilised scale (rsLoRA, arXiv 2312.03732)."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.models.adapters.nf4 import NF4Linear
from trainer.models.decoder.skip_init import SkipInit
from trainer.models.pretrained.own_class import OTHER_INPUTS
from trainer.runtime.errors import TrainerError, suggestion

ALL_LINEAR = "all"
# Among experts peft 0.21 takes an adapter of layers so called for one of the experts, whose weights are joined in
# transformers 5, and so loses one of dense layers and shared experts next to them: they are adapted by name alone.
AS_EXPERTS = re.compile(r"\.(gate_proj|up_proj|down_proj|w1|w2|w3)$")
IN_BLOCKS = re.compile(r"\.(layers|h|blocks|block)\.\d+\.")  # what lists of blocks are called, in transformers, too


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    """An adapter: rank, alpha, dropout of its inputs, and which linear layers of the blocks it adapts.

    targets: last names of modules (q_proj), full names, or ALL_LINEAR. rank_stabilized: scale alpha / sqrt(rank)
    instead of alpha / rank.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: tuple[str, ...] = (ALL_LINEAR,)
    rank_stabilized: bool = False

    def scale(self, rank: int) -> float:
        """Return the factor of the product B A."""
        return self.alpha / (math.sqrt(rank) if self.rank_stabilized else rank)


class LoraLinear(nn.Module):
    """base(x) + scale * B A dropout(x), the base frozen: (…, inputs) to (…, outputs).

    The adapter's weights are cast to the input's dtype, never the input to theirs: a copy of the input for each
    adapter would cost more memory than all adapters.
    """

    enabled: bool = True
    padded: int = 0  # rank that products are computed with, filled up with zeros; 0: the adapter's own

    def __init__(self, base: nn.Linear | NF4Linear, rank: int, *, scale: float, dropout: float) -> None:
        super().__init__()
        self.base, self.scale, self.dropout = base, scale, dropout
        device = base.device if isinstance(base, NF4Linear) else base.weight.device
        self.lora_A = nn.Parameter(torch.zeros(rank, base.in_features, device=device))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank, device=device))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the adapted layer's outputs, the base's where the adapter is off."""
        outputs: Tensor = self.base(inputs)
        if not self.enabled:
            return outputs
        dropped = functional.dropout(inputs, self.dropout, self.training) if self.dropout else inputs
        more = max(0, self.padded - len(self.lora_A))
        into = functional.pad(self.lora_A, (0, 0, 0, more)) if more else self.lora_A
        out = functional.pad(self.lora_B, (0, more)) if more else self.lora_B
        down = functional.linear(dropped, into.to(inputs.dtype))
        up = functional.linear(down, out.to(down.dtype))
        return outputs + (self.scale * up).to(outputs.dtype)

    @property
    def weight(self) -> Tensor:
        """The base's weight: some classes of transformers look at its dtype, as peft's layers let them."""
        found: Tensor = self.base.weight  # type: ignore[assignment]
        return found

    @property
    def bias(self) -> Tensor | None:
        """The base's bias, None without one."""
        return self.base.bias

    @torch.no_grad()
    def merged(self) -> Tensor:
        """Return base + scale * B A, (outputs, inputs), formed in fp64 and rounded once to the base's dtype."""
        weight = self.base.dense(torch.float64) if isinstance(self.base, NF4Linear) else self.base.weight.double()
        product = self.lora_B.double() @ self.lora_A.double()
        return (weight + self.scale * product).to(self.base_dtype)

    @property
    def base_dtype(self) -> torch.dtype:
        """The dtype of the base's weight, that it had before it was quantised where it is."""
        return self.base.dtype if isinstance(self.base, NF4Linear) else self.base.weight.dtype


def linear_modules(model: nn.Module) -> dict[str, nn.Linear | NF4Linear]:
    """Return the linear layers within the blocks by full name; the head is none of them.

    What computes more than a product, as Llama 4's router, is no linear layer, whatever its class is derived from.
    """
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | NF4Linear) and IN_BLOCKS.search(name) and _multiplies(type(module))  # type: ignore[arg-type]  # a class is hashable
    }


@cache
def _multiplies(kind: Any) -> bool:
    """Return whether a class of linear layers computes the product alone; a model's own one, as Falcon's, is tried."""
    if kind.forward in (nn.Linear.forward, NF4Linear.forward):
        return True
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), torch.device("cpu"):
            small, inputs = kind(3, 2), torch.tensor([[1.0, -2.0, 3.0]])
            found, exact = small(inputs), functional.linear(inputs, small.weight, small.bias)
            return isinstance(found, Tensor) and found.shape == exact.shape and bool(torch.allclose(found, exact))
    except (TypeError, ValueError, AttributeError, RuntimeError):  # a router, a layer in groups: made of other things
        return False


def chosen_modules(model: nn.Module, targets: Sequence[str]) -> list[str]:
    """Return the full names of the layers that `targets` name.

    Raises:
        TrainerError: RM713 for a target that names no layer, and for a model without a layer to adapt.
    """
    known = list(linear_modules(model))
    if not known:
        what = "the blocks of this model have no linear layer that an adapter could be put on"
        raise TrainerError("RM713", what=what, next="Train all weights, without --adapter.")
    if ALL_LINEAR in targets:
        experts = any(name.endswith(".experts") for name, _ in model.named_modules())
        text = [name for name in known if not OTHER_INPUTS.search(name)]  # nothing would train an adapter of theirs
        return [name for name in text if not (experts and AS_EXPERTS.search(name))]
    for target in targets:
        if not any(_names(target, name) for name in known):
            leaves = sorted({name.rsplit(".", 1)[-1] for name in known})
            raise TrainerError("RM713", what=f"no layer is called {target!r}; {suggestion(target, leaves)}")
    return [name for name in known if any(_names(target, name) for target in targets)]


def _names(target: str, name: str) -> bool:
    return name == target or name.endswith(f".{target}")


def add_lora(model: nn.Module, config: LoraConfig, *, seed: int) -> list[str]:
    """Freeze the model and put an adapter on the chosen layers; return their names.

    A is drawn uniformly in 1/sqrt(inputs), as peft does, and B is 0, so that the model is at first unchanged.

    Args:
        model: base model, frozen in place.
        seed: seed of the A matrices.

    Raises:
        TrainerError: RM713 for a target that names no layer.
    """
    names = chosen_modules(model, config.targets)
    insert(model, dict.fromkeys(names, config.rank), config)
    generator = torch.Generator().manual_seed(seed)
    for _, module in lora_modules(model):
        bound = module.base.in_features**-0.5
        with torch.no_grad(), torch.device("cpu"):
            module.lora_A.copy_(torch.rand(module.lora_A.shape, generator=generator) * 2 * bound - bound)
    return names


def insert(model: nn.Module, ranks: Mapping[str, int], config: LoraConfig) -> None:
    """Freeze the model and wrap the named layers, each with its rank; the adapters are 0.

    Args:
        model: base model, frozen in place.
        ranks: rank of the adapter by the layer's name.
    """
    model.requires_grad_(False)
    layers = linear_modules(model)
    for name, rank in ranks.items():
        wrapped = LoraLinear(layers[name], rank, scale=config.scale(rank), dropout=config.dropout)
        replace(model, name, wrapped.train(layers[name].training))


def replace(model: nn.Module, name: str, module: nn.Module) -> None:
    """Put `module` into the place called `name`.

    Args:
        model: model that is changed.
        name: dotted name of the module to replace.
        module: module to put there.
    """
    parent, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(parent), leaf, module)


def lora_modules(model: nn.Module) -> Iterator[tuple[str, LoraLinear]]:
    """Yield the adapted layers by full name."""
    for name, module in model.named_modules():
        if isinstance(module, LoraLinear):
            yield name, module


def pad_ranks(model: nn.Module, rank: int) -> None:
    """Have each adapter compute its products with a rank filled up to `rank` by zeros, which change no result.

    A library that reads a narrow operand in wide tiles then reads what is there.

    Args:
        model: model with adapters, changed in place.
        rank: least rank of a product; 0 for the adapters' own.
    """
    for _, module in lora_modules(model):
        module.padded = rank


@contextlib.contextmanager
def adapters_disabled(model: nn.Module) -> Iterator[None]:
    """Run the base model within the context: the reference of a preference loss needs no second model."""
    wrapped = next((module for module in model.modules() if hasattr(module, "disable_adapter")), None)
    if wrapped is not None:  # by peft
        with wrapped.disable_adapter(), _base_values(model):  # type: ignore[operator]
            yield
        return
    modules = [module for _, module in lora_modules(model)]
    before = [module.enabled for module in modules]
    for module in modules:
        module.enabled = False
    try:
        yield
    finally:
        for module, enabled in zip(modules, before, strict=True):
            module.enabled = enabled


@contextlib.contextmanager
def _base_values(model: nn.Module) -> Iterator[None]:
    """Have weights that peft changed in place, such as biases, be the base's within the context."""
    holder = next((module for module in model.modules() if getattr(module, "base_values", None)), None)
    kept: dict[str, Tensor] = getattr(holder, "base_values", {})
    weights = [(holder.get_parameter(name), value) for name, value in kept.items()] if holder is not None else []
    before = [weight.data for weight, _ in weights]
    for weight, value in weights:
        weight.data = value.to(weight)
    try:
        yield
    finally:
        for (weight, _), value in zip(weights, before, strict=True):
            weight.data = value


@torch.no_grad()
def merge(model: nn.Module) -> None:
    """Replace each adapted layer by a dense one with the merged weight, in the base's dtype."""
    for name, module in list(lora_modules(model)):
        base = module.base
        with SkipInit(), torch.device("meta"):
            dense = nn.Linear(base.in_features, base.out_features, bias=base.bias is not None)
        dense.weight = nn.Parameter(module.merged())
        if base.bias is not None:
            dense.bias = nn.Parameter(base.bias.detach())
        replace(model, name, dense)
