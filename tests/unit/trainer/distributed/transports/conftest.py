"""What tests of trainer/distributed/transports share."""

from __future__ import annotations

import pytest
import torch.distributed as dist


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> dist.TCPStore:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
