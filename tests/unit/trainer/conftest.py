from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from trainer.data.bar import NUMBERS, Bars

MakeBars = Callable[..., Bars]
WriteCsv = Callable[[Bars], Path]


def random_bars(count: int, seed: int = 0) -> Bars:
    """Bars of a random walk: valid by construction, without meaning."""
    rng = np.random.default_rng(seed)
    volatility = 0.01 * np.exp(0.1 * np.cumsum(rng.normal(size=count)))
    close = 100 * np.exp(np.cumsum(rng.normal(size=count) * volatility))
    open_ = close * np.exp(rng.normal(size=count) * 0.002)
    return Bars(
        date=np.datetime64("2020-01-01T00:00:00") + np.arange(count) * np.timedelta64(86400, "s"),
        open=open_,
        high=np.maximum(open_, close) * (1 + rng.random(count) * 0.01),
        low=np.minimum(open_, close) * (1 - rng.random(count) * 0.01),
        close=close,
        volume=rng.integers(0, 10**9, count).astype(float),
        vix_close=10 + 30 * rng.random(count),
    )


@pytest.fixture(scope="session")
def make_bars() -> MakeBars:
    return random_bars


@pytest.fixture
def write_csv(tmp_path: Path) -> WriteCsv:
    def write(bars: Bars) -> Path:
        path = tmp_path / "bars.csv"
        columns = ("date", *NUMBERS)
        rows = zip(*(getattr(bars, column).tolist() for column in columns), strict=True)
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
        return path

    return write


@pytest.fixture
def torch_as_before() -> Iterator[None]:
    """Undo what `make_reproducible` sets for the whole process."""
    import torch

    from trainer.device.accelerator import set_deterministic

    environment, threads = dict(os.environ), torch.get_num_threads()
    yield
    set_deterministic(False)
    torch.set_num_threads(threads)
    os.environ.clear()
    os.environ.update(environment)


@pytest.fixture
def mount_tmpfs(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a real, small file system; skips where the tests may not mount."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"this machine does not let the tests mount a tmpfs: {done.stderr.splitlines()[0]}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # a file without a name may still be open


@pytest.fixture
def plain_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what torchrun leaves in the environment of a rank."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
