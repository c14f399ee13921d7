"""Ranks that lose their connection."""

from __future__ import annotations

import pytest

from trainer.device.memory import OutOfMemory
from trainer.distributed.parallel.world import BootstrapGroup
from trainer.runtime.errors import TrainerError

pytestmark = pytest.mark.usefixtures("plain_process")


def test_broken_connection_is_no_defect_and_memory_that_runs_out_stays_what_it_is() -> None:
    bootstrap = BootstrapGroup(rank=1, world_size=2, local_rank=1, store=None, address="", rendezvous_id="m")
    with pytest.raises(TrainerError, match="RM568"), bootstrap.waiting():
        raise RuntimeError("Connection closed by peer\nmore")
    with pytest.raises(OutOfMemory), bootstrap.waiting():
        raise OutOfMemory("HIP out of memory")
