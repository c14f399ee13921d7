"""One rank's trial of a transport, in a process that may be killed: `python -m trainer.distributed.transports.attempt`.

It prints a JSON line before each thing that can hang, and one with what it found at the end. The sums are of
whole numbers, so that any transport must return them exactly.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from trainer.runtime.leaving import leave_after_gloo

if TYPE_CHECKING:
    import torch

SIZES = (256, 262_144, 8_388_608)  # fp32 elements, 1 KiB to 32 MiB: libraries change protocol in between
ROUNDS = 3
MODULUS = 251  # a prime, so that the pattern does not repeat with chunks of a power of two


def main(argv: Sequence[str] | None = None) -> int:
    """Join the group and add; return 0 if all sums were right, else 1; what raises ends with a traceback."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # NCCL and RCCL write to stdout
    arguments = parse(argv)

    def report(**record: Any) -> None:
        print(json.dumps(record), file=lines, flush=True)

    found = run(arguments, report)
    report(done=found)
    return 0 if found["wrong"] == "" else 1


def run(arguments: argparse.Namespace, report: Callable[..., None]) -> dict[str, Any]:
    """Return what was wrong, empty for nothing, and the seconds of a small and of a large sum.

    Args:
        report: receives each phase that begins.
    """
    report(begin="import torch")
    import torch
    import torch.distributed as dist
    from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

    from trainer.distributed.transports.reduce import summation
    from trainer.distributed.transports.transport import TRANSPORTS

    transport = TRANSPORTS[arguments.transport]
    device = torch.device(arguments.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    report(begin="join the group")
    host, port = arguments.store.rsplit(":", 1)
    store = TCPStore(host, int(port), is_master=False, timeout=timedelta(seconds=arguments.seconds))
    dist.init_process_group(
        transport.backend,
        store=PrefixStore(arguments.prefix, store),
        rank=arguments.rank,
        world_size=arguments.world,
        timeout=timedelta(seconds=arguments.seconds),
    )
    add = summation(on_host=transport.on_host, compression="none")
    found = measure(lambda flat: add(flat)(), arguments, device, report)
    report(begin="leave the group")
    add.close()
    dist.destroy_process_group()
    return found


def measure(
    add: Callable[[torch.Tensor], None],
    ranks: argparse.Namespace,
    device: torch.device,
    report: Callable[..., None],
) -> dict[str, Any]:
    """Add patterns of each of SIZES up and compare; `add` sums a flat tensor over the ranks in place.

    Args:
        add: sums a flat tensor over the ranks, in place.
        device: device of the tensors.
        report: receives each phase that begins.
    """
    import torch

    seconds: dict[int, float] = {}
    for size in SIZES:
        report(begin=f"all-reduce of {4 * size:,} bytes")
        pattern = torch.arange(size, device=device, dtype=torch.float32) % MODULUS
        expected = pattern * (ranks.world * (ranks.world + 1) / 2)
        for _ in range(ROUNDS):
            mine = pattern * (ranks.rank + 1)
            _finish(device)
            begun = time.perf_counter()
            add(mine)
            _finish(device)
            seconds[size] = min(seconds.get(size, float("inf")), time.perf_counter() - begun)
            if not torch.equal(mine, expected):
                count = int((mine != expected).sum())
                return {"wrong": f"{count:,} of {size:,} sums differ from the right ones", "seconds": seconds}
    return {"wrong": "", "seconds": seconds}


def _finish(device: torch.device) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments that `selection.trial` gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--store", required=True, help="host:port of the ranks' store")
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    return parser.parse_args(argv)


def leave(status: int, argv: Sequence[str]) -> None:
    """End this process. With gloo nothing that follows the group's end is a part of the trial.

    Args:
        status: exit status.
        argv: the program's arguments.
    """
    from trainer.distributed.transports.transport import TRANSPORTS

    if TRANSPORTS[parse(argv).transport].backend == "gloo":
        leave_after_gloo(status)
    sys.exit(status)


if __name__ == "__main__":
    leave(main(), sys.argv[1:])
