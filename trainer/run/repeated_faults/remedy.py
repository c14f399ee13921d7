"""Remedies for repeated deaths at one step, and for matrix products that a library is known to read out of bounds.

Exact resumes repeat the fault as well: the same data meet the same kernels. From ROCm 7.2 on hipBLASLt reads past
operands narrower than its tile on gfx1200 and gfx1201, which resets the card (ROCm/rocm-libraries#7992, #11714), as
the products of a LoRA adapter have. Two ways around are reported there: another BLAS, and memory that torch does not
cache. Nothing here has run on an AMD card.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from trainer.config.sections.decoder import DecoderConfig
from trainer.config.train import TrainConfig
from trainer.device.accelerator import Accelerator
from trainer.device.blas import select_back_end
from trainer.run.repeated_faults.mark import Fault, death_in, faults_of

# The host runs ahead of the card by some steps, so that one fault is met at neighbouring ones.
NEAR = 8
OWN_CHOICE = ("ROCBLAS_USE_HIPBLASLT", "TORCH_BLAS_PREFER_HIPBLASLT")  # set by hand: then the choice stays
NARROW = {"architectures": ("gfx1200", "gfx1201"), "hip": (7, 2)}
NARROW_WHY = "from ROCm 7.2 on hipBLASLt may read past an adapter's narrow operands on this card (rocm-libraries#7992)"


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """One way around a fault: a name, the environment that it needs, and whether torch is to leave its Lt library."""

    name: str
    environment: Mapping[str, str]
    plain_blas: bool = False


LADDER = (
    Remedy(
        name="BLAS without its Lt library",
        # rocBLAS takes hipBLASLt by itself on gfx12; the last two are the names that torch's versions read.
        environment={"ROCBLAS_USE_HIPBLASLT": "0", "DISABLE_ADDMM_HIP_LT": "1", "DISABLE_ADDMM_CUDA_LT": "1"},
        plain_blas=True,
    ),
    Remedy(
        name="memory without torch's cache",
        environment={"PYTORCH_NO_HIP_MEMORY_CACHING": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    ),
)


@dataclass(frozen=True, kw_only=True)
class Treatment:
    """Treatment of a run at its start: earlier faults, how many remedies of LADDER are in use, and why."""

    faults: tuple[Fault, ...] = ()
    remedies: int = 0
    reason: str = ""

    @property
    def names(self) -> list[str]:
        """The remedies in use."""
        return [remedy.name for remedy in LADDER[: self.remedies]]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Treatment:
        """Return the treatment that `dataclasses.asdict` made `content` of, as ranks pass it on."""
        return cls(**{**content, "faults": tuple(Fault(**fault) for fault in content["faults"])})

    def facts(self) -> dict[str, Any]:
        """Return the entry of metadata.json."""
        return {"names": self.names, "reason": self.reason, "died_at": [fault.step for fault in self.faults]}


def remedies_after(faults: Sequence[Fault]) -> int:
    """Return how many remedies the next attempt takes: one more where the last two deaths under as many are near.

    Deaths of unknown cause do not count: SIGKILL from outside strikes any step, the same one twice where a run is
    resumed often, and another BLAS would change the run's numbers for nothing.

    Args:
        faults: attempts that died, the latest last.
    """
    used = max((fault.remedies for fault in faults), default=0)
    last = [fault.step for fault in faults if fault.known and fault.remedies == used][-2:]
    repeated = len(last) == 2 and abs(last[0] - last[1]) <= NEAR
    return min(used + repeated, len(LADDER))


def after_deaths(folder: Path, kind: Literal["cpu", "cuda", "rocm"]) -> Treatment:
    """Return the treatment of an unfinished run that is resumed; a CPU has no remedy, and its deaths are kept.

    Args:
        folder: folder of the unfinished run.
        kind: where the run computes.
    """
    faults = faults_of(folder)
    used = max((fault.remedies for fault in faults), default=0)
    if (fault := death_in(folder, remedies=used)) is not None:
        faults = (*faults, fault)
    remedies = 0 if kind == "cpu" else remedies_after(faults)
    if not remedies:
        return Treatment(faults=faults)
    deaths = ", ".join(f"of {fault.cause} in step {fault.step}" for fault in faults if fault.known)
    return Treatment(faults=faults, remedies=remedies, reason=f"the process died {deaths}")


def killed_from_outside(treatment: Treatment) -> str:
    """Return a sentence on the last attempt where it ended for an unknown cause; empty for none."""
    if not treatment.faults or treatment.faults[-1].known:
        return ""
    return (
        f"the last attempt ended in step {treatment.faults[-1].step} without noting a fault, as SIGKILL from outside "
        "or a power cut does: nothing is changed for it"
    )


def against_narrow_products(treatment: Treatment, config: TrainConfig, accelerator: Accelerator) -> Treatment:
    """Return the treatment with the first remedy where adapters are trained and the card's library may fault.

    Args:
        config: the run's settings.
        accelerator: where the run computes.
    """
    version = tuple(int(part) for part in re.findall(r"\d+", torch.version.hip or "")[:2])
    affected = accelerator.arch in NARROW["architectures"] and version >= NARROW["hip"]
    own = [name for name in OWN_CHOICE if name in os.environ]
    adapted = isinstance(config.model, DecoderConfig) and config.model.adapter.adapter != "none"
    if treatment.remedies or own or not affected or not adapted:
        return treatment
    return Treatment(faults=treatment.faults, remedies=1, reason=NARROW_WHY)


def apply(treatment: Treatment) -> None:
    """Set what the remedies need; before the device's first product, and for the cache before its first memory."""
    for remedy in LADDER[: treatment.remedies]:
        os.environ.update(remedy.environment)
        if remedy.plain_blas:
            select_back_end("cublas")  # its reason for not doing so is no error: the environment stands


def kind_of(device: str) -> Literal["cpu", "cuda", "rocm"]:
    """Return where a run with `--device` of this value computes.

    Args:
        device: auto, cpu, cuda or cuda:N.
    """
    if device == "cpu" or not torch.cuda.is_available():
        return "cpu"
    return "rocm" if torch.version.hip else "cuda"
