"""Set-up of a run among ranks: a name that restarts keep, limits, and the join of the world."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from torch import nn

from trainer.config.choices import WHOLE
from trainer.config.sections.run import DistributedConfig
from trainer.config.setting import OnResume
from trainer.config.train import TrainConfig, settings
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.join import join
from trainer.distributed.watchdog.guard import Launch
from trainer.distributed.watchdog.heartbeat import HeartbeatWriter
from trainer.distributed.watchdog.timeouts import Limits
from trainer.runtime.errors import TrainerError

CEILING_S = 600.0  # a first batch tunes kernels (MIOpen) or compiles, which has been seen to take minutes
UNDER_TORCHRUN = "TORCHELASTIC_RUN_ID"


def attempt_of(config: TrainConfig, ranks: Ranks) -> TrainConfig:
    """Return `config` so that every attempt of one launch means one run: the next ones resume the first's.

    Launchers count their attempts each for itself; what one of them starts again is started again for all.
    """
    launch = Launch.from_environment()
    again = ranks.any_rank(launch.attempt > 0)[0]
    name, resume = config.run.run, config.run.resume
    if name is None and launch.restarts and not resume:
        name = launch_name()
    return config.having(run=name, resume=resume or ("auto" if again else None))


def launch_name() -> str:
    """Return a run name that all attempts of rank 0's launcher have in common: when it began, and its number."""
    parent = os.getppid()
    fields = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()
    since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # field 22 of the line, the third is the first here
    began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot
    # To ten seconds: the clock is set now and then, and attempts must agree; the process number tells launches apart.
    return f"{datetime.fromtimestamp(round(began, -1), UTC):%Y%m%d-%H%M%S}-{parent:08x}"


def require_best_on(config: TrainConfig, device: str, bootstrap: Ranks) -> None:
    """Raise RM527 where the best weights are to be kept on the host and are sharded over cards.

    Args:
        device: name of this rank's device, such as "cuda:0".
    """
    if (
        config.loop.best_on == "host"
        and config.distributed.parallel == "fsdp2"
        and bootstrap.world_size > 1
        and device != "cpu"
    ):
        raise TrainerError("RM527", what="--best-on host with --parallel fsdp2 on cards")


def limits_of(config: DistributedConfig) -> Limits | None:
    """Return how long a section may take; None without a watchdog: a plain process may be in a debugger."""
    requested = config.hang_timeout
    if requested is None or (requested == "auto" and UNDER_TORCHRUN not in os.environ):
        return None
    ceiling = CEILING_S if isinstance(requested, str) else requested
    return Limits(floor=min(config.hang_floor, ceiling), ceiling=ceiling)


def alike() -> list[str]:
    """Return the settings that have to be the same on all ranks."""
    decisive = (OnResume.FIXED, OnResume.LENGTH)
    return [name for name, each in settings().items() if each.resume in decisive or each.about.alike]


def require_alike(bootstrap: Ranks, config: TrainConfig, data_sha256: str) -> None:
    """Raise RM565 on all ranks where their settings or data would make them train different models.

    Args:
        data_sha256: hash of the data file.
    """
    values = config.complete()
    decisive = {name: str(values[name]) for name in alike()} | {"data": data_sha256}
    gathered = bootstrap.gather(decisive)
    differing = [name for name in decisive if len({one[name] for one in gathered}) > 1]
    if differing:
        what = "; ".join(f"{name}: {', '.join(one[name][:40] for one in gathered)}" for name in differing)
        raise TrainerError("RM565", what=what, where=f"ranks 0 to {len(gathered) - 1}, in this order")


@contextlib.contextmanager
def joined(
    bootstrap: Ranks, device: str, config: DistributedConfig, heartbeat: HeartbeatWriter | None
) -> Iterator[Ranks]:
    """Hand out the ranks of `bootstrap` able to train together, and end what that started.

    Args:
        device: name of this rank's device, such as "cuda:0".
    """
    ranks = join(
        bootstrap,
        device,
        parallel=config.parallel,
        comms=config.comms,
        compression=config.gradient_compression,
        heartbeat=heartbeat,
    )
    try:
        yield ranks
    finally:
        ranks.release()


def placed(model: nn.Module, device: str, config: DistributedConfig, ranks: Ranks) -> nn.Module:
    """Return the model where `prepare` expects it: one in parts need not fit on a card, so it waits outside.

    Args:
        model: network with its first weights.
        device: name of this rank's device, such as "cuda:0".
    """
    in_parts = ranks.world_size > 1 and config.parallel not in WHOLE
    return model if in_parts else model.to(device)
