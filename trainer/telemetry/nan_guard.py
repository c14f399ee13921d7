"""A guard against NaN that costs nothing per step: losses stay on the device and are checked every so often.

At each look that finds all finite, the weights, the optimizer and the random numbers are kept. When a look finds a
loss that is not, the steps since the last one are computed again, this time with each layer watched: that names
the layer, and the weights and the batch of that very step are saved for `python -m trainer replay`.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trainer.data.loading.batch import Batch, apply
from trainer.runtime.errors import TrainerError
from trainer.telemetry.layer_monitor import LayerMonitor, NonFiniteSource, non_finite_source

KIND, VERSION = "trainer NaN replay", 1
MOST_BYTES = 2**30  # of weights and optimizer that are kept beside the originals


class Stateful(Protocol):
    """An optimizer, scaler or scheduler."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state; may share memory with the original."""

    def load_state_dict(self, state_dict: Any, /) -> Any:
        """Take the state over."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Steps as the guard keeps them: the first's number from 1, each one's row numbers, losses on the device."""

    first: int
    rows: Sequence[Tensor]
    losses: Tensor  # (steps,)


@dataclass(frozen=True, kw_only=True)
class Suspected:
    """One of them, looked at again."""

    step: int
    rows: Tensor
    loss: Tensor


@dataclass(frozen=True, kw_only=True)
class RecomputeHooks:
    """The loop's functions for a step, so that the guard can compute it again.

    `fetch` returns inputs and targets of row numbers; numbers are remembered, as batches would hold memory. `compute`
    takes inputs and targets and leaves the gradients of their loss; `advance` takes the optimizer's step; `stateful`
    are optimizer, scaler, scheduler: what changes with it in addition to the weights. `scaled` gradients (fp16) may
    overflow, as such steps are skipped.
    """

    fetch: Callable[[Tensor], Batch]
    compute: Callable[[Any, Any], object]
    advance: Callable[[], object]
    stateful: Sequence[Stateful]
    scaled: bool = False


class NanGuard:
    """Hooks for the loop: begin before a step, record after its backward pass, check at the end of an epoch.

    `architecture` describes the network in the replay file, as metadata.json does. `every` 0: off. `agree` makes
    one rank's finding that of all, so that none waits for another that has ended.
    """

    def __init__(
        self,
        model: nn.Module,
        again: RecomputeHooks,
        *,
        architecture: Mapping[str, Any],
        folder: Path,
        every: int = 100,
        most_bytes: int = MOST_BYTES,
        agree: Callable[[bool], bool] = bool,
    ) -> None:
        self._model, self._again, self._architecture, self._folder = model, again, architecture, folder
        self._every, self._most_bytes, self._agree = every, most_bytes, agree
        self._recorded: list[Recorded] = []
        self._steps = 0
        self._good = self._keep() if every else None

    def begin(self) -> None:
        """Look back where it is time to, before a step computes anything.

        Raises:
            TrainerError: RM506, naming layer and file.
        """
        if self._every and self._steps >= self._every:
            self.check()

    def record(self, first: int, rows: Sequence[Tensor], losses: Tensor) -> None:
        """Remember steps, `first` the number of the first of them; `losses` (steps,) are not looked at now.

        A step that was undone comes again.

        Args:
            first: number of the first step.
            rows: row numbers of each step.
            losses: shape (steps,).
        """
        if self._every:
            if self._recorded and self._recorded[-1].first == first:
                self._steps -= len(self._recorded.pop().rows)
            held = losses.detach() if losses.requires_grad else losses
            self._recorded.append(Recorded(first=first, rows=rows, losses=held))
            self._steps += len(rows)

    def check(self) -> None:
        """Look at the losses since the last look, which waits for the device; call it between two steps.

        Raises:
            TrainerError: RM506, naming layer and file.
        """
        if not self._recorded:
            return
        finite = torch.isfinite(torch.cat([each.losses.float() for each in self._recorded])).tolist()
        if not self._agree(not all(finite)):
            self._recorded.clear()
            self._steps = 0
            self._good = self._keep()
            return
        if all(finite):
            raise TrainerError("RM506", what="another rank's loss is not finite; its own message names the step")
        raise self._found(one_by_one(self._recorded)[: finite.index(False) + 1])

    def _keep(self) -> dict[str, Any] | None:
        """Return copies of all that a step changes, None where they would take too much memory.

        Frozen weights are kept as they are: a second copy of GPT-2's was 8 % of the memory of its LoRA on a card.
        """
        weights = self._model.state_dict()
        if sum(value.nbytes for value in weights.values()) * 3 > self._most_bytes:
            return None
        named = self._model.named_parameters(remove_duplicate=False)
        frozen = {name for name, weight in named if not weight.requires_grad}
        kept = {name: value if name in frozen else copied(value) for name, value in weights.items()}
        states = [each.state_dict() for each in self._again.stateful]
        return {"model": kept, "stateful": copied(states), "random": random_state()}

    def _found(self, steps: list[Suspected]) -> TrainerError:
        """Return the error for the last of `steps`, its replay file written."""
        culprit, bad = self._search(steps)
        path = self._folder / f"nan-step-{bad.step}.pt"
        self._save(path, bad, culprit)
        what = f"{culprit.place} is not finite" if culprit else f"the loss is {bad.loss.item()}, the layer is not known"
        why = "" if culprit else self._why_unknown()
        return TrainerError(
            "RM506", what=what, where=f"step {bad.step}", why=why, next=f"python -m trainer replay {path}"
        )

    def _search(self, steps: list[Suspected]) -> tuple[NonFiniteSource | None, Suspected]:
        """Compute the steps again from the state that was kept, until one shows what is not finite."""
        if self._good is None:
            return None, steps[-1]
        self._restore(self._good)
        for each in steps:
            weights, random = copy.deepcopy(self._model.state_dict()), random_state()
            inputs, targets = self._again.fetch(each.rows)
            with LayerMonitor(self._model).watching() as monitor:
                loss = self._again.compute(inputs, targets)
            culprit = non_finite_source(monitor, self._model, inputs, loss, scaled=self._again.scaled)
            if culprit is not None:
                self._model.load_state_dict(weights)
                set_random_state(random)
                return culprit, each
            self._again.advance()
        return None, steps[-1]

    def _restore(self, state: dict[str, Any]) -> None:
        self._model.load_state_dict(state["model"])
        for each, kept in zip(self._again.stateful, state["stateful"], strict=True):
            each.load_state_dict(copy.deepcopy(kept))
        set_random_state(state["random"])

    def _why_unknown(self) -> str:
        if self._good is None:
            copy = "no second copy of the model is kept (several ranks, or it is too large)"
            return f"{copy}; the file holds the batch, and the weights as they became"
        return "computed again from the last look, every step was finite: the failure did not repeat"

    def _save(self, path: Path, bad: Suspected, culprit: NonFiniteSource | None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        inputs, targets = self._again.fetch(bad.rows)
        content = {
            "kind": KIND,
            "version": VERSION,
            "step": bad.step,
            "suspect": culprit.place if culprit else None,
            "architecture": dict(self._architecture),
            "model": {name: value.cpu() for name, value in self._model.state_dict().items()},
            "inputs": apply(Tensor.cpu, inputs),
            "targets": apply(Tensor.cpu, targets),
            "random": random_state(),
        }
        with path.open("wb") as stream:
            torch.save(content, stream)
            stream.flush()
            os.fsync(stream.fileno())


def one_by_one(recorded: Sequence[Recorded]) -> list[Suspected]:
    """Return each step of `recorded`."""
    return [
        Suspected(step=step, rows=rows, loss=loss)
        for each in recorded
        for step, (rows, loss) in enumerate(zip(each.rows, each.losses, strict=True), start=each.first)
    ]


def copied(value: Any) -> Any:
    """Return a copy of nested dicts, lists and tensors; several times as fast as copy.deepcopy, every few steps."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [copied(each) for each in value]
    return value if isinstance(value, bool | int | float | str | None) else copy.deepcopy(value)


def random_state() -> list[Tensor]:
    """Return the states of torch's generators: the CPU's, then each accelerator's."""
    cards = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    return [torch.get_rng_state(), *cards]


def set_random_state(states: list[Tensor]) -> None:
    """Put torch's generators where `random_state` found them."""
    torch.set_rng_state(states[0])
    for index, state in enumerate(states[1:]):
        torch.cuda.set_rng_state(state, index)
