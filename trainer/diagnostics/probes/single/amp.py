"""Probe `amp`: mixed precision trains, agrees with fp32, and an overflow skips exactly its own step."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.device.compiler_import import avoid_compiler_import
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude, equal

if TYPE_CHECKING:
    import torch

STEPS = 30
OVERFLOW_STEP = 15
INITIAL_SCALE = 2.0**12  # far from overflow by itself with this model, so that the injected one is the only one
LOSS_RATIO_LIMIT = 0.5  # last loss over first
BATCH, FEATURES, WIDTH = 256, 32, 64
# Relative difference of the loss in autocast from that in fp32, same weights, same batch. The unit roundoff
# is 5e-4 in fp16 and 4e-3 in bf16, and a mean over a batch averages most of it out.
LOSS_LIMITS = {"float16": 1e-3, "bfloat16": 5e-3}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One training step: its loss, the scale before and after, and how many weights changed their bits."""

    loss: float
    scale_before: float
    scale_after: float
    weights_changed: int


class Trainer:
    """A small MLP on a fixed random batch, trained in autocast with a gradient scaler."""

    def __init__(self, device: Device, dtype: torch.dtype, scaler: torch.amp.GradScaler, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        self.device, self.dtype, self.scaler = device, dtype, scaler
        layers = torch.nn.Linear(FEATURES, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1)
        self.model = torch.nn.Sequential(*layers).to(device.torch_type)
        x = torch.randn(BATCH, FEATURES)
        self.x = x.to(device.torch_type)  # (batch, feature)
        self.y = torch.tanh(x @ torch.randn(FEATURES, 1)).to(device.torch_type)  # (batch, 1)
        avoid_compiler_import()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)

    def loss(self, autocast: bool = True) -> torch.Tensor:
        """Return the mean squared error on the batch, forward in the low precision or in fp32."""
        import torch

        with torch.autocast(self.device.torch_type, dtype=self.dtype, enabled=autocast):
            return torch.nn.functional.mse_loss(self.model(self.x).float(), self.y)

    def product_dtype(self) -> str:
        """Return the dtype in which autocast leaves the output of a linear layer."""
        import torch

        with torch.autocast(self.device.torch_type, dtype=self.dtype):
            return str(self.model(self.x).dtype).removeprefix("torch.")

    def step(self, overflow: bool = False) -> Step:
        """Run forward, backward, scaler step and update; `overflow` puts one infinity into the gradients."""
        import torch

        before, scale_before = self.weights(), self.scaler.get_scale()
        self.optimizer.zero_grad()
        loss = self.loss()
        torch.autograd.backward(self.scaler.scale(loss))
        if overflow:
            self.inject()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return Step(
            loss=loss.item(),
            scale_before=scale_before,
            scale_after=self.scaler.get_scale(),
            weights_changed=numerics.bits_changed(before, self.weights()),
        )

    def inject(self) -> None:
        """Make one element of the first gradient infinite, as an fp16 overflow would."""
        gradient = next(self.model.parameters()).grad
        assert gradient is not None
        gradient.view(-1)[0] = math.inf

    def weights(self) -> torch.Tensor:
        """Return a copy of all weights in one dimension."""
        import torch

        return torch.nn.utils.parameters_to_vector(self.model.parameters()).detach().clone()


def measure(request: Request) -> Verdict:
    """Train in the device's low precision, with an overflow on the way.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    import torch

    device = placement.place(request.expect)
    numerics.strict_fp32()
    seed = numerics.fresh_seed()
    names = low_precisions(device)
    trainers = {name: Trainer(device, getattr(torch, name), make_scaler(device), seed) for name in names}
    checks = [check for name, trainer in trainers.items() for check in precision_checks(name, trainer)]
    steps = [trainers[names[0]].step(overflow=index == OVERFLOW_STEP) for index in range(STEPS)]
    return conclude(
        probe="amp",
        summary=f"{names[0]} autocast trained on {device.name}; one injected overflow skipped one step.",
        checks=[*checks, *training_checks(steps)],
        numbers=[Number(name="seed", value=seed, unit=""), *loss_numbers(steps)],
        device=device,
        versions=placement.versions(),
    )


def low_precisions(device: Device) -> tuple[str, ...]:
    """Return the dtypes to compare with fp32, first the one that is trained in: fp16 on cards, for the scaler."""
    if device.kind == "cpu":
        return ("bfloat16",)
    return ("float16", "bfloat16") if placement.computes_bf16(device) else ("float16",)


def make_scaler(device: Device) -> torch.amp.GradScaler:
    """Return a gradient scaler that halves on overflow and does not grow during the probe."""
    import torch

    return torch.amp.GradScaler(device.torch_type, init_scale=INITIAL_SCALE, growth_interval=10 * STEPS)


def precision_checks(name: str, trainer: Trainer) -> list[Check]:
    """Check that autocast really lowers the precision, and its loss agrees with that of fp32 all the same."""
    low, full = trainer.loss().item(), trainer.loss(autocast=False).item()
    difference = abs(low - full) / abs(full)
    return [
        equal(f"autocast computes in {name}", trainer.product_dtype(), name, "dtype"),
        at_most(f"{name} loss against fp32", difference, LOSS_LIMITS[name], "relative difference"),
    ]


def training_checks(steps: list[Step]) -> list[Check]:
    """Check that the loss falls, and that the overflow skips its step, halves the scale and changes nothing else."""
    overflow, last = steps[OVERFLOW_STEP], steps[-1]
    others = steps[:OVERFLOW_STEP] + steps[OVERFLOW_STEP + 1 :]
    void = [step.loss for step in steps if not 0 <= step.loss < math.inf]  # NaN is neither
    return [
        at_most("losses are numbers", len(void), 0, "steps whose squared error is none"),
        at_most("loss falls", last.loss / steps[0].loss, LOSS_RATIO_LIMIT, "last loss / first loss"),
        at_most("overflow leaves the weights alone", overflow.weights_changed, 0, "weights changed"),
        equal("overflow halves the scale", overflow.scale_after, overflow.scale_before / 2, "loss scale"),
        equal("other steps are taken", sum(s.weights_changed > 0 for s in others), len(others), "steps"),
        equal("other steps keep the scale", sum(s.scale_after == s.scale_before for s in others), len(others), "steps"),
        at_most("training goes on", last.loss / overflow.loss, 1.0, "last loss / loss at the overflow"),
    ]


def loss_numbers(steps: list[Step]) -> list[Number]:
    """Return the first and last loss, for the record."""
    named = {"first loss": steps[0].loss, "last loss": steps[-1].loss}
    return [Number(name=name, value=value, unit="mean squared error") for name, value in named.items()]


if __name__ == "__main__":
    sys.exit(entry.main("amp", measure))
