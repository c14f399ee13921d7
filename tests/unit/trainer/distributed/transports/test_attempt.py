"""An attempt of a transport in processes that may be killed."""

from __future__ import annotations

import re

import pytest
import torch.distributed as dist

from tests.fixtures.transports import climb, faulty
from trainer.distributed.transports.transport import GLOO
from trainer.runtime.errors import TrainerError


def test_hang_costs_its_time_limit_and_names_where(store: dist.TCPStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in faulty("gloo:hang").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TrainerError, match="RM561") as caught:
        climb(store, [GLOO], seconds=6)
    phases = "import torch|join the group|all-reduce of 1,024 bytes"
    assert re.search(rf"hung in '({phases})', ended after", caught.value.what)
