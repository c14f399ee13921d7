from __future__ import annotations

import random

import numpy as np
import torch

from trainer.device.rng import RngState, draw_state, seed_all, set_state

CPU = torch.device("cpu")


def draws() -> list[float]:
    """One of every kind, twice: Python's and NumPy's normal numbers come in pairs, the second one kept."""
    return [
        *(random.gauss(0, 1) for _ in range(3)),
        *(float(np.random.normal()) for _ in range(3)),
        *torch.randn(3).tolist(),
        *torch.nn.functional.dropout(torch.ones(20)).tolist(),
    ]


def test_seed_decides_all_kinds() -> None:
    seed_all(3)
    first = draws()
    seed_all(3)
    assert draws() == first
    seed_all(4)
    assert all(one != other for one, other in zip(draws()[:9], first[:9], strict=True))


def test_state_brings_all_kinds_back() -> None:
    seed_all(3)
    random.gauss(0, 1)
    np.random.normal()
    state, moment = draw_state(CPU), RngState.now(CPU)
    first = draws()
    set_state(state, CPU)
    assert draws() == first
    moment.restore(CPU)
    assert draws() == first
