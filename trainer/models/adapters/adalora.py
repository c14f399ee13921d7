"""AdaLoRA (Zhang et al., arXiv 2303.10512) by peft: its schedule from a run's steps, and its state in checkpoints.

peft's `RankAllocator` holds smoothed sensitivities in dictionaries of its own, from which it decides which ranks each
layer keeps. Here they are buffers of the model, so that checkpoints have them and the best weights keep their ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trainer.runtime.errors import TrainerError

KIND = "ADALORA"
ADAPTER = "default"  # peft's name of the one adapter
DEFAULTS: dict[str, Any] = {"init_r": 12, "target_r": 8, "tinit": 0, "tfinal": 0, "deltaT": 1}
# Options of LoRA that peft's AdaLoRA takes and passes over, and what decides in their place.
PASSED_OVER = {
    "r": "init_r and target_r are its ranks",
    "use_rslora": "its scale is lora_alpha / init_r",
    "alpha_pattern": "all layers have lora_alpha",
    "lora_bias": "its products have no bias",
    "rank_pattern": "training decides on it",
}


def is_adalora(config: Mapping[str, Any]) -> bool:
    """Return whether the content of an adapter_config.json is of AdaLoRA."""
    return str(config.get("peft_type")).upper() == KIND


def scheduled(config: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return the configuration with the steps of the run as `total_step`.

    Args:
        config: content of an adapter_config.json of AdaLoRA.
        steps: optimizer steps of the whole run.

    Raises:
        TrainerError: RM712 where ranks and steps leave nothing to decide, or an option is passed over by peft.
    """
    for name, why in PASSED_OVER.items():
        if config.get(name):
            raise TrainerError("RM712", what=f"{name} = {config[name]!r} is passed over by AdaLoRA: {why}")
    given = config.get("total_step")
    if given not in (None, steps):
        next = f"Leave total_step out: it is then the run's. Or give --max-steps {given}."
        raise TrainerError("RM712", what=f"total_step = {given!r}, and the run takes {steps:,} steps", next=next)
    _require_numbers(config)
    values = DEFAULTS | {name: config[name] for name in DEFAULTS if name in config}
    _require_schedule(values, steps)
    return {**config, "total_step": steps}


def _require_numbers(config: Mapping[str, Any]) -> None:
    """Raise RM712 for a number that ends peft in an exception within training."""
    least = {"init_r": 1, "target_r": 1, "tinit": 0, "tfinal": 0, "deltaT": 1}
    for name, lowest in least.items():
        value = config.get(name, lowest)
        if type(value) is not int or value < lowest:
            raise TrainerError("RM712", what=f"{name} = {value!r} is no whole number of at least {lowest}")
    for name in ("beta1", "beta2"):
        value = config.get(name, 0.85)
        if type(value) is not float or not 0 < value < 1:
            raise TrainerError("RM712", what=f"{name} = {value!r} is no number between 0 and 1")


def _require_schedule(values: Mapping[str, Any], steps: int) -> None:
    """Raise RM712 where no rank is to be given up, or no step is left to do it in.

    Sensitivities are known after the first step: a decision before that would take all ranks for useless.
    """
    if values["target_r"] >= values["init_r"]:
        what = f"target_r = {values['target_r']} is not below init_r = {values['init_r']}: no rank is given up"
        raise TrainerError("RM712", what=what, next="Lower target_r, or use LoRA.")
    begin, end = values["tinit"], steps - values["tfinal"]
    if end <= max(begin, 1):
        what = f"tinit = {begin} and tfinal = {values['tfinal']} leave none of {steps:,} steps to choose ranks"
        raise TrainerError("RM712", what=what, next="Lower tinit and tfinal, or train for more steps.")


class RankBudget(nn.Module):
    """What AdaLoRA decides from, as buffers: smoothed sensitivities of the adapter's weights, and the ranks kept.

    `mean.N` and `spread.N` belong to the adapter's weight number N (peft's exp_avg_ipt and exp_avg_unc), `kept.N`,
    shape (ranks,), to layer N, and `decided` is whether any rank was given up yet.
    """

    decided: Tensor

    def __init__(self, tuner: Any) -> None:
        """Take peft's `AdaLoraModel`, not as a part of this module."""
        super().__init__()
        named = {name: value for name, value in tuner.model.named_parameters() if f".{ADAPTER}" in name}
        self.weights = [name for name in named if "lora_" in name]
        self.layers = [name for name in self.weights if ".lora_E." in name]
        with torch.no_grad():
            self.mean = _buffers(torch.zeros_like(named[name]) for name in self.weights)
            self.spread = _buffers(torch.zeros_like(named[name]) for name in self.weights)
            self.kept = _buffers(torch.ones(len(named[name]), dtype=torch.uint8) for name in self.layers)
        self.register_buffer("decided", torch.zeros((), dtype=torch.uint8))

    def pattern(self) -> dict[str, list[bool]] | None:
        """Return peft's rank_pattern: which ranks each layer keeps; None before any decision."""
        if not self.decided:
            return None
        return {name: kept.bool().tolist() for name, kept in zip(self.layers, self.kept.buffers(), strict=True)}

    @torch.no_grad()
    def allocate(self, tuner: Any, step: int) -> None:
        """Have peft weigh the gradients of a step that was taken, and give ranks up where its schedule does.

        Args:
            tuner: peft's `AdaLoraModel`; its gradients are those of the step.
            step: optimizer steps taken, from 1.
        """
        allocator, config = tuner.rankallocator, tuner.peft_config[ADAPTER]
        allocator.exp_avg_ipt = dict(zip(self.weights, self.mean.buffers(), strict=True))
        allocator.exp_avg_unc = dict(zip(self.weights, self.spread.buffers(), strict=True))
        allocator.ipt = dict(allocator.exp_avg_ipt)  # a name that is missing has its averages set to 0
        config.rank_pattern = self.pattern()
        tuner.update_and_allocate(step)
        for buffers, found in ((self.mean, allocator.exp_avg_ipt), (self.spread, allocator.exp_avg_unc)):
            for name, buffer in zip(self.weights, buffers.buffers(), strict=True):
                buffer.copy_(found[name]) if name in found else buffer.zero_()
        if config.rank_pattern is not None:
            self.decided.fill_(1)
            for name, kept in zip(self.layers, self.kept.buffers(), strict=True):
                kept.copy_(torch.tensor(config.rank_pattern[name], dtype=torch.uint8))


def _buffers(values: Iterator[Tensor] | Any) -> nn.Module:
    """Return tensors as the numbered buffers of a module."""
    made = nn.Module()
    for number, value in enumerate(values):
        made.register_buffer(str(number), value)
    return made


class Penalised(NamedTuple):
    """The sum of a piece's losses, and AdaLoRA's penalty, both scalars: the penalty is part of the batch's mean."""

    loss: Tensor
    penalty: Tensor


def penalty_of(tuner: Any) -> Tensor:
    """Return peft's weighted distance of the adapter's A and B from orthogonal matrices, equation 4 of the paper.

    Args:
        tuner: peft's `AdaLoraModel`.
    """
    distances = []
    for name, value in tuner.model.named_parameters():
        if f".{ADAPTER}" in name and (".lora_A." in name or ".lora_B." in name):
            product = value @ value.T if ".lora_A." in name else value.T @ value
            distances.append(torch.linalg.norm(product - torch.eye(len(product), out=torch.empty_like(product))))
    weight: float = tuner.peft_config[ADAPTER].orth_reg_weight
    return weight * torch.stack(distances).sum() / len(distances)


def with_penalty(model: nn.Module) -> nn.Module:
    """Have a model with a loss return `Penalised` in training; evaluation has the loss alone.

    peft adds the penalty to the loss that transformers computes, which is not computed here.
    """

    def penalise(module: Any, inputs: Any, loss: Tensor) -> Tensor | Penalised:
        if not module.training:
            return loss
        return Penalised(loss=loss, penalty=penalty_of(module.decoder.causal.base_model))

    model.register_forward_hook(penalise)
    return model
