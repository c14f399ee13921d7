"""Take the Triton kernels that Inductor writes for the trainer's models: sources, types, constants and warps, as JSON.

    python -m benchmarks.kernels.take FILE [WORKLOAD …]

Runs every workload (benchmarks/kernels/workloads.py), forward and backward, on the card of this machine, and records
what is handed to Triton to be compiled. Kernels that differ in names alone are kept once. The file names the card,
torch and Triton that made it; nothing in it has run on the architectures that it is compiled for later.
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


@dataclass(kw_only=True)
class Taken:
    """Kernels by the hash of their source; `refused` holds the workloads that failed, each with its reason."""

    kernels: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    workload: str = ""
    heuristics: str = ""

    def add(self, source: Any, options: dict[str, Any]) -> None:
        """Record one kernel with one configuration, as Inductor hands it to Triton.

        Args:
            source: Triton's ASTSource.
            options: what Triton is to compile it with.
        """
        body = anonymous(source.fn.src, source.fn.__name__)
        key = hashlib.sha256(body.encode()).hexdigest()[:12]
        kernel = self.kernels.setdefault(
            key,
            {"name": source.fn.__name__, "workloads": [], "heuristics": self.heuristics, "source": body}
            | {"configurations": []},
        )
        if self.workload not in kernel["workloads"]:
            kernel["workloads"].append(self.workload)
        found = configuration(source, options)
        if found not in kernel["configurations"]:
            kernel["configurations"].append(found)


def anonymous(text: str, name: str) -> str:
    """Return a kernel's source with `kernel` for its name, and without remarks on where it came from.

    Args:
        text: source of the function, decorators left out or not.
        name: of the function.
    """
    begin = text.index("def ")
    return re.sub(rf"\b{re.escape(name)}\b", "kernel", text[begin:]).rstrip() + "\n"


def configuration(source: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the types, constants, attributes and options of one compilation, as JSON holds them.

    Args:
        source: Triton's ASTSource.
        options: what Triton is to compile it with.
    """
    names = source.fn.arg_names
    attributes = {",".join(map(str, key)): value for key, value in sorted(source.attrs.items())}
    return {
        "signature": dict(source.signature),
        "constants": {names[key[0]]: value for key, value in source.constants.items()},
        "attributes": attributes,
        "options": {name: options[name] for name in ("num_warps", "num_stages") if name in options},
    }


@contextmanager
def recording(taken: Taken) -> Iterator[None]:
    """Note what Inductor has Triton compile in this process."""
    import triton
    from torch._inductor.async_compile import AsyncCompile

    compile_, load = triton.compile, AsyncCompile.triton

    def loaded(self: Any, name: str, source: str, *more: Any) -> Any:
        taken.heuristics = source.partition("@triton_heuristics.")[2].partition("@triton.jit")[0].strip()
        return load(self, name, source, *more)

    def recorded(source: Any, *arguments: Any, **more: Any) -> Any:
        if hasattr(source, "fn"):
            taken.add(source, more.get("options") or {})
        return compile_(source, *arguments, **more)

    triton.compile, AsyncCompile.triton = recorded, loaded  # type: ignore[method-assign]
    try:
        yield
    finally:
        triton.compile, AsyncCompile.triton = compile_, load  # type: ignore[method-assign]


def take(names: list[str], device: Any) -> Taken:
    """Run the workloads on the device and return what was compiled.

    Args:
        names: of the workloads; empty for all.
        device: torch device.
    """
    import torch

    from benchmarks.kernels.workloads import WORKLOADS

    taken = Taken()
    with recording(taken):
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

    made_by = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "none",
        "torch": torch.__version__,
        "triton": triton.__version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    return {"made_by": made_by, "refused": taken.refused, "kernels": [taken.kernels[key] for key in taken.kernels]}


def main() -> int:
    """Take the kernels and write the file; 1 where a workload failed or the file would be too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("workloads", nargs="*")
    args = parser.parse_args()
    # In this process alone, and from no cache: otherwise Triton is called where nothing is recorded, or not at all.
    os.environ |= {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = json.dumps(document(take(args.workloads, device), device), indent=1)
    args.file.write_text(text + "\n")
    held = json.loads(text)
    print(f"{len(held['kernels'])} kernels, {len(text):,} bytes, {len(held['refused'])} workloads failed", flush=True)
    return 1 if held["refused"] or not held["kernels"] or len(text) > MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
