"""The optimizer of a run, over the weights that are trained: AdamW, with moments in 8 bits or on the host, or Muon."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.choices import OPTIMIZERS
from trainer.device.compiler_import import avoid_compiler_import
from trainer.engine.adamw_8bit import AdamW8bit
from trainer.engine.muon import Muon, adamw_step
from trainer.models.activation_checkpointing import layers
from trainer.models.decoder.attention import Attention
from trainer.runtime.errors import TrainerError

ADAMW, ADAMW_8BIT, MUON, ADAMW_HOST = OPTIMIZERS
AUXILIARY_BETAS = (0.9, 0.95)  # of AdamW next to Muon, as in the reference implementation
# Bytes of moments for each byte of a trained weight in fp32, at least: Muon has one moment for matrices.
STATES = {ADAMW: 2.0, ADAMW_8BIT: 0.5, MUON: 1.0, ADAMW_HOST: 0.0}
MOMENTS = ("exp_avg", "exp_avg_sq")
PIECE = 2**24  # numbers whose moments are on the device at a time, where they wait on the host


class AdamWOnHost(torch.optim.Optimizer):
    """AdamW whose moments wait in the host's memory, pinned for a card, and are on the device PIECE numbers at a time.

    A step moves 16 bytes for each trained number: for full tuning where weights and gradients fit and moments do not.
    """

    def __init__(self, weights: Iterable[Tensor], lr: float) -> None:
        super().__init__(list(weights), {"lr": lr, "weight_decay": 0.01})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step with the gradients as they are; moments are made before any weight changes."""
        loss = None if closure is None else closure()
        found = [(group, each) for group in self.param_groups for each in group["params"] if each.grad is not None]
        for _, weight in found:
            if not self.state[weight]:
                self.state[weight] = {"step": 0} | {name: on_host(torch.zeros_like(weight)) for name in MOMENTS}
        for group, weight in found:
            self._step_of(weight, lr=group["lr"], weight_decay=group["weight_decay"])
        return loss

    def _step_of(self, weight: Tensor, *, lr: float, weight_decay: float) -> None:
        """Copies and step are in one stream's order: the host does not wait for them."""
        assert weight.grad is not None
        state, rows = self.state[weight], weight.is_contiguous()
        flat = [each.detach().view(-1) if rows else each.detach() for each in (weight, *map(state.get, MOMENTS))]
        gradients = weight.grad.reshape(-1) if rows else weight.grad
        for begin in range(0, len(gradients), PIECE):
            part, *held = (each[begin : begin + PIECE] for each in flat)
            part.grad = gradients[begin : begin + PIECE]
            moved = [each.to(weight.device, non_blocking=True, copy=True) for each in held]
            now = {"step": state["step"], **dict(zip(MOMENTS, moved, strict=True))}
            adamw_step(part, now, lr=lr, weight_decay=weight_decay)
            for mine, there in zip(held, moved, strict=True):
                mine.copy_(there, non_blocking=True)
        state["step"] += 1

    def reserve(self) -> list[Tensor]:
        """Return memory that the next step takes on the device: two moments of a piece and two temporaries."""
        largest = max((weight for group in self.param_groups for weight in group["params"]), key=Tensor.numel)
        size = min(largest.numel(), PIECE)
        return [torch.empty(size, dtype=largest.dtype, device=largest.device) for _ in range(4)]

    def state_dict(self) -> dict[str, Any]:
        """Return the states once the device has written them."""
        if any(weight.is_cuda for group in self.param_groups for weight in group["params"]):
            torch.cuda.synchronize()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load as any optimizer does, but for moments: torch would put them where the weights are."""
        super().load_state_dict(state_dict)
        weights = [weight for group in self.param_groups for weight in group["params"]]
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        for number, weight in zip(numbers, weights, strict=True):
            for name, value in state_dict["state"].get(number, {}).items():
                self.state[weight][name] = on_host(value, pinned=weight.is_cuda) if name in MOMENTS else value


def on_host(value: Tensor, *, pinned: bool | None = None) -> Tensor:
    """Return a copy in the host's memory, pinned where it comes from a card."""
    made = torch.empty(value.shape, dtype=value.dtype, pin_memory=value.is_cuda if pinned is None else pinned)
    return made.copy_(value)


def require_optimizer(name: str, parallel: str, world_size: int) -> None:
    """Raise RM529 for an optimizer that takes weights whole where ranks hold parts of them.

    Args:
        name: value of `--optimizer`.
        parallel: value of `--parallel`.
        world_size: number of ranks.
    """
    if name != ADAMW and parallel != "ddp" and world_size > 1:
        what = f"--optimizer {name} with --parallel {parallel}: it takes each weight whole"
        raise TrainerError("RM529", what=what, next=f"Use --parallel ddp, or --optimizer {ADAMW}.")


def optimizer_of(
    name: str,
    model: nn.Module,
    learning_rate: float,
    *,
    fused: bool,
    products: torch.dtype = torch.float32,
    muon_learning_rate: float | None = None,
) -> torch.optim.Optimizer:
    """Return the optimizer of the weights that are trained.

    Args:
        name: value of `--optimizer`.
        model: network; weights that need no gradient are left out.
        learning_rate: step size.
        fused: use one kernel for all weights, where AdamW has one.
        products: number format of Muon's products: bf16 where the run computes in it, else fp32.
        muon_learning_rate: spectral norm of Muon's updates; None for updates of AdamW's size at `learning_rate`.

    Raises:
        TrainerError: RM529 for Muon where the network has no matrix for it.
    """
    avoid_compiler_import()
    if name == MUON:
        return muon(model, learning_rate, products=products, spectral=muon_learning_rate)
    if name == ADAMW_8BIT:
        wide = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        trained = [weight for weight in model.parameters() if weight.requires_grad]
        return AdamW8bit(trained, lr=learning_rate, wide=[weight for weight in trained if id(weight) in wide])
    if name == ADAMW_HOST:
        return AdamWOnHost([weight for weight in model.parameters() if weight.requires_grad], lr=learning_rate)
    return adamw(model, learning_rate, fused=fused)


def adamw(model: nn.Module, learning_rate: float, *, fused: bool) -> torch.optim.AdamW:
    """Return the optimizer of the weights that are trained; `fused` is one kernel for all, on CPUs and cards alike.

    Args:
        model: network; weights that need no gradient are left out.
        learning_rate: step size.
        fused: use one kernel for all weights.
    """
    known = {weight.device.type for weight in model.parameters()} <= {"cpu", "cuda"}
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    return torch.optim.AdamW(trained, lr=learning_rate, fused=(fused and known) or None)


def muon(model: nn.Module, learning_rate: float, *, products: torch.dtype, spectral: float | None = None) -> Muon:
    """Return Muon over the matrices of hidden layers, with AdamW for all other trained weights.

    Args:
        model: network; weights that need no gradient are left out.
        learning_rate: step size of AdamW, and without `spectral` of both.
        products: number format of the products that orthogonalise.
        spectral: learning rate of the matrices, the spectral norm of an update; None for `learning_rate`.

    Raises:
        TrainerError: RM529 where there is no such matrix.
    """
    hidden = {id(weight): weight for weight in hidden_matrices(model) if weight.requires_grad}
    if not hidden:
        why = "it takes the matrices of hidden layers whole; an adapter's factors are none"
        raise TrainerError("RM529", what="--optimizer muon: no trained matrix of a hidden layer", why=why)
    others = [weight for weight in model.parameters() if weight.requires_grad and id(weight) not in hidden]
    own = {"lr": spectral, "spectral": True} if spectral is not None else {}
    groups: list[dict[str, Any]] = [{"params": list(hidden.values()), "matrices": True, **own}]
    groups += [{"params": others, "matrices": False}] if others else []
    return Muon(groups, lr=learning_rate, products=products, betas=AUXILIARY_BETAS, parts=stacked_rows(model))


def stacked_rows(model: nn.Module) -> dict[int, tuple[int, ...]]:
    """Return the rows of query, key and value in each weight that holds all three, by the weight's id."""
    found: dict[int, tuple[int, ...]] = {}
    for module in model.modules():
        if isinstance(module, Attention) and module.config.fused and isinstance(module.qkv_proj, nn.Linear):
            shared = module.config.kv_heads * module.config.head_dim
            found[id(module.qkv_proj.weight)] = (module.config.heads * module.config.head_dim, shared, shared)
    return found


def hidden_matrices(model: nn.Module) -> list[torch.Tensor]:
    """Return the weights of linear layers within a network's blocks; of a plain stack all but the first and the last.

    Embeddings and the output layer are left to AdamW, as the method's author does
    (https://kellerjordan.github.io/posts/muon/).
    """
    blocks = list(getattr(model, "blocks", []))
    linear = [
        module for block in blocks or layers(model) for module in block.modules() if isinstance(module, nn.Linear)
    ]
    return [module.weight for module in (linear if blocks else linear[1:-1])]
