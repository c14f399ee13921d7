"""Compute again the one step that the NaN guard saved, and show every layer's numbers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.build import build
from trainer.models.losses import SQUARED_ERROR, batch_weight_of, loss_sum_of
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say
from trainer.telemetry.layer_monitor import LayerMonitor, non_finite_source
from trainer.telemetry.nan_guard import KIND, VERSION

FIELDS = {"kind", "version", "step", "suspect", "architecture", "model", "inputs", "targets", "random"}


def replay(file: Path) -> int:
    """Run the saved step on the CPU in the saved precision; return 0 where the failure shows again, 1 where not.

    Raises:
        TrainerError: RM508 where `file` is no replay file.
    """
    saved = load(file)
    model = model_of(saved, file)
    torch.set_rng_state(saved["random"][0])
    tables: list[tuple[str, Tensor]] = []
    with LayerMonitor(model).watching() as monitor, observing(model, tables):
        loss = loss_of(saved["architecture"], model(saved["inputs"]), saved["targets"])
        loss.backward()
    culprit = non_finite_source(monitor, model, saved["inputs"], loss)
    say(table([("inputs", saved["inputs"]), *tables, ("loss", loss)]))
    found = culprit.place if culprit else None
    emit("replay", step=saved["step"], suspect=found, recorded=saved["suspect"], reproduced=culprit is not None)
    say(f"step {saved['step']}: " + (f"{found} is not finite" if found else "all is finite here, on the CPU"))
    return 0 if culprit else 1


def model_of(saved: dict[str, Any], file: Path) -> nn.Module:
    """Return the saved network with its weights. Raises RM508 where it is none that this trainer builds."""
    try:
        model = build(saved["architecture"]).to(saved["inputs"].dtype)
        loss_sum_of(saved["architecture"].get("loss", SQUARED_ERROR))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        what = "it describes no network that this trainer builds"
        raise TrainerError("RM508", what=what, where=str(file), why=_first_line(error)) from error
    try:
        model.load_state_dict(saved["model"])
    except RuntimeError as error:
        raise TrainerError("RM508", what="weights and architecture differ", where=str(file), why=str(error)) from error
    return model


def loss_of(architecture: dict[str, Any], outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the batch's mean loss, by the loss that the run was trained with.

    Args:
        architecture: entry `architecture` of the run's record.
        outputs: shape (rows, outputs).
        targets: shape (rows, 1).
    """
    weights = architecture.get("class_weights")
    batch_weight = batch_weight_of(weights)
    total = loss_sum_of(architecture.get("loss", SQUARED_ERROR), weights)(outputs, targets)
    return total / (len(targets) if batch_weight is None else batch_weight(targets))


def load(file: Path) -> dict[str, Any]:
    """Read a replay file without running any code that may be in it.

    Raises:
        TrainerError: RM508 where it is no replay file of this version.
    """
    try:
        saved = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise TrainerError("RM508", what="there is no such file", where=str(file)) from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise TrainerError("RM508", what="the file cannot be read", where=str(file), why=_first_line(error)) from error
    if not isinstance(saved, dict) or saved.get("kind") != KIND or saved.keys() != FIELDS:
        raise TrainerError("RM508", what="the file holds something else", where=str(file))
    if saved["version"] != VERSION:
        raise TrainerError("RM508", what=f"version {saved['version']}, this trainer reads {VERSION}", where=str(file))
    return saved


class observing:  # noqa: N801  # reads as a word in a with statement
    """Collect name and output of each leaf layer into `tables`, in the order of the computation."""

    def __init__(self, model: nn.Module, tables: list[tuple[str, Tensor]]) -> None:
        self.model, self.tables = model, tables

    def __enter__(self) -> None:
        leaves = [(name, module) for name, module in self.model.named_modules() if not any(module.children())]
        self.handles = [module.register_forward_hook(self._hook(name or "model")) for name, module in leaves]

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _hook(self, name: str):  # type: ignore[no-untyped-def]
        def hook(module: nn.Module, _inputs: object, output: Tensor) -> None:
            self.tables.append((f"{name} ({type(module).__name__})", output.detach()))

        return hook


def table(rows: list[tuple[str, Tensor]]) -> str:
    """Return a line for each tensor: name, shape, how many values are not finite, largest finite magnitude."""
    lines = [f"{'':<20} {'shape':<14} {'not finite':>12} {'largest':>12}"]
    for name, value in rows:
        finite = value[torch.isfinite(value)]
        largest = f"{finite.abs().max().item():.4g}" if finite.numel() else "-"
        shape = "x".join(map(str, value.shape)) or "-"
        lines.append(f"{name:<20} {shape:<14} {value.numel() - finite.numel():>12,} {largest:>12}")
    return "\n".join(lines)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
