"""Take the Triton kernels that Inductor writes for the trainer's models: sources and heuristics, as JSON.

    python -m benchmarks.kernels.take FILE [WORKLOAD …]                               # on a machine with a card
    PYTHONPATH=FOLDER_WITH_TRITON python -m benchmarks.kernels.take FILE --no-card    # on one without

Has every workload (benchmarks/kernels/workloads.py) compiled, forward and backward, and records what Inductor writes.
Without a card its Triton back end writes for the CPU's tensors, under the properties of an AMD card; these kernels are
never run, and the workloads' numbers are of no use. Kernels that differ in names alone are kept once. The file states
which of the two made it, with the versions; nothing in it has run on an AMD card.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
MOST_BYTES = 500_000
STAND_IN = "gfx1100"  # the architecture whose properties Inductor is given without a card


@dataclass(kw_only=True)
class Taken:
    """Kernels by the hash of their source; `refused` holds the workloads that failed, each with its reason."""

    kernels: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    workload: str = ""

    def add(self, name: str, source: str) -> None:
        """Record one kernel as Inductor writes it.

        Args:
            name: of the function.
            source: text of the kernel's module.
        """
        heuristics, _, function = source.partition("@triton_heuristics.")[2].partition("@triton.jit")
        body = re.sub(rf"\b{re.escape(name)}\b", "kernel", function[function.index("def ") :]).rstrip() + "\n"
        key = hashlib.sha256(body.encode()).hexdigest()[:12]
        empty = {"name": name, "workloads": [], "heuristics": heuristics.strip(), "source": body}
        workloads = self.kernels.setdefault(key, empty)["workloads"]
        if self.workload not in workloads:
            workloads.append(self.workload)


class NotRun:
    """Stands in for a compiled kernel on a machine without a card."""

    def run(self, *arguments: Any, **more: Any) -> None:
        """Leave the outputs as they are."""


@contextmanager
def recording(taken: Taken, *, card: bool) -> Iterator[None]:
    """Note what Inductor has compiled in this process; without a card it is not."""
    from torch._inductor.async_compile import AsyncCompile

    load = AsyncCompile.triton

    def loaded(self: Any, name: str, source: str, *more: Any, **options: Any) -> Any:
        taken.add(name, source)
        return load(self, name, source, *more, **options) if card else NotRun()

    AsyncCompile.triton = loaded
    try:
        yield
    finally:
        AsyncCompile.triton = load


def write_for(architecture: str) -> None:
    """Have Inductor write Triton for the CPU's tensors, as for an AMD card of the architecture.

    Args:
        architecture: gfx name.
    """
    import torch
    import torch._inductor.config
    import torch.utils._triton
    from torch._inductor.runtime import hints

    from benchmarks.kernels.compile import properties

    found = properties(architecture)._replace(type="cpu")
    torch.version.hip = "7.2"
    torch._inductor.config.cpu_backend = "triton"
    torch.utils._triton.triton_hash_with_backend = lambda: "none"  # type: ignore[assignment]  # which asks for a driver
    hints.DeviceProperties.create = classmethod(lambda cls, device: found)


def take(names: list[str], device: Any) -> Taken:
    """Have the workloads compiled on the device and return what was written.

    Args:
        names: of the workloads; empty for all.
        device: torch device.
    """
    import torch

    from benchmarks.kernels.workloads import WORKLOADS

    taken = Taken()
    with recording(taken, card=device.type != "cpu"):
        for taken.workload in names or WORKLOADS:
            torch.manual_seed(0)
            torch._dynamo.reset()
            began, before = time.monotonic(), len(taken.kernels)
            try:
                WORKLOADS[taken.workload](device)
            except Exception as error:  # one that this torch cannot compile leaves the others
                taken.refused[taken.workload] = f"{type(error).__name__}: {str(error).strip()[:600]}"
            more = len(taken.kernels) - before
            print(f"{taken.workload}: {more} more kernels, {time.monotonic() - began:.1f} s", flush=True)
    for name, why in taken.refused.items():
        print(f"FAILED {name}: {why}", flush=True)
    return taken


def document(taken: Taken, device: Any) -> dict[str, Any]:
    """Return what the file holds."""
    import torch
    import triton

    without = f"none: written for the CPU's tensors under the properties of a card of {STAND_IN}, and not run"
    made_by = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else without,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    return {"made_by": made_by, "refused": taken.refused, "kernels": largest(list(taken.kernels.values()))}


def largest(kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return of each workload the elementwise kernel and the reduction with the longest sources.

    These use most registers. What several workloads share counts for the first.
    """
    found = []
    for workload in dict.fromkeys(name for kernel in kernels for name in kernel["workloads"]):
        own = [kernel for kernel in kernels if kernel["workloads"][0] == workload]
        for kinds in (("pointwise", "foreach"), ("reduction", "persistent_reduction")):
            of_kind = [kernel for kernel in own if kernel["heuristics"].startswith(kinds)]
            found += sorted(of_kind, key=lambda kernel: -len(kernel["source"]))[:1]
    return found


def main() -> int:
    """Take the kernels and write the file; 1 where a workload failed or the file would be too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("workloads", nargs="*")
    parser.add_argument("--no-card", action="store_true")
    args = parser.parse_args()
    # In this process alone, and from no cache: otherwise Inductor writes where nothing is recorded, or not at all.
    os.environ |= {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    import torch

    device = torch.device("cpu" if args.no_card else "cuda")
    if args.no_card:
        write_for(STAND_IN)
    text = json.dumps(document(take(args.workloads, device), device), indent=1)
    args.file.write_text(text + "\n")
    held = json.loads(text)
    print(f"{len(held['kernels'])} kernels, {len(text):,} bytes, {len(held['refused'])} workloads failed", flush=True)
    return 1 if held["refused"] or not held["kernels"] or len(text) > MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
