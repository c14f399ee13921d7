from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import rank_processes

ROOT = Path(__file__).resolve().parents[4]
RunRanks = Callable[..., list[dict[str, Any]]]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def run_ranks(program: Path, *arguments: str, ranks: int = 2) -> list[dict[str, Any]]:
    """Run `program` as ranks of this machine; return what each printed as its last line."""
    common = {
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    each = [{**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]
    with tempfile.TemporaryDirectory() as folder:
        ended = rank_processes.run(program, arguments, each, Path(folder))
    for status, _, stderr in ended:
        assert status == 0, stderr[-4000:]
    return [json.loads(stdout.splitlines()[-1]) for _, stdout, _ in ended]


@pytest.fixture(scope="session")
def two_ranks() -> RunRanks:
    return run_ranks
