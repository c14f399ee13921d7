"""Every random number generator a training step may draw from, read and set as one value."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed Python, NumPy, torch's CPU generator and all devices."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@dataclass(frozen=True, kw_only=True)
class RngState:
    """State of all generators, in their own types: cheap enough to take at every step."""

    python: Any
    numpy: Any
    host: torch.Tensor
    device: torch.Tensor | None

    @classmethod
    def now(cls, device: torch.device) -> RngState:
        """Return the generators' present state."""
        return cls(
            python=random.getstate(),
            numpy=np.random.get_state(legacy=False),
            host=torch.get_rng_state(),
            device=torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        )

    def restore(self, device: torch.device) -> None:
        """Set the generators back to this moment."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.host)
        if self.device is not None:
            torch.cuda.set_rng_state(self.device, device)


def draw_state(device: torch.device) -> dict[str, Any]:
    """Return the state of Python's, NumPy's, torch's CPU and `device`'s generators, as plain data and tensors."""
    name, keys, position, has_gauss, gauss = np.random.get_state()
    state = {
        "python": random.getstate(),
        "numpy": (str(name), torch.from_numpy(np.array(keys, dtype=np.int64)), int(position), int(has_gauss), gauss),
        "torch": torch.get_rng_state(),
    }
    return state | ({"device": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {})


def set_state(state: dict[str, Any], device: torch.device) -> None:
    """Set what `draw_state` returned; a device state is left out where the run moved to or from a CPU."""
    random.setstate(state["python"])
    name, keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, gauss))
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and "device" in state:
        torch.cuda.set_rng_state(state["device"], device)
