"""An attempt of a transport in processes that may be killed."""

from __future__ import annotations

import re

import pytest
import torch.distributed as dist

from tests.fixtures.transports import climb
from trainer.distributed.transports import attempt
from trainer.distributed.transports.transport import GLOO
from trainer.runtime.errors import TrainerError


def test_hang_costs_its_time_limit_and_names_where(store: dist.TCPStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(attempt.FAULT, "gloo:hang")
    with pytest.raises(TrainerError, match="RM561") as caught:
        climb(store, [GLOO], seconds=6)
    assert re.search(r"hung in '(import torch|join the group)', ended after", caught.value.what)


def test_unknown_fault_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(attempt.FAULT, "gloo:sneeze")
    with pytest.raises(ValueError, match="sneeze"):
        attempt.fault_for("gloo")
    assert attempt.fault_for("nccl") == ""
