"""Compile the trainer's own Triton kernels and those that Inductor generates for one architecture."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path
from typing import Any

from benchmarks.amd_kernels import inductor
from trainer.models.fast import triton_softmax

OWN_TYPES = {"logits": "*bf16", "labels": "*i64", "scales": "*fp32", "losses": "*fp32"}
OWN_TYPES |= dict.fromkeys(("stride", "vocabulary", "ignored"), "i32") | {"PIECE": "constexpr"}


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """One kernel: bytes of its code, spilled vector registers, bytes of shared memory; or why it is refused."""

    subject: str
    kernel: str
    bytes: int = 0
    spilled: int = 0
    shared: int = 0
    refused: str = ""


def compiled(archs: Sequence[str], lanes: int, units: int) -> Iterator[tuple[str, Compiled]]:
    """Yield each architecture's kernels; of the configurations that Inductor would time on a card, the worst.

    Inductor's source is generated for the last architecture: it depends on the width of a wave, not on the name.

    Args:
        archs: architectures whose waves are of one width, such as "gfx1100".
        lanes: of a wave, 32 or 64.
        units: compute units.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    own = ASTSource(fn=triton_softmax.softmax_rows, signature=OWN_TYPES, constexprs={"PIECE": triton_softmax.PIECE})
    pairs = [("own", "softmax_rows", [(own, {"num_warps": triton_softmax.WARPS})])]
    for subject, source in inductor.generated(archs[-1], lanes, units):
        with inductor.made_up_card(archs[-1], lanes, units):
            pairs += [(subject, name, list(configurations(tuner))) for name, tuner in tuners(source)]
    for arch in archs:
        for subject, name, configured in pairs:
            yield arch, tried(subject, name, configured, GPUTarget("hip", arch, lanes))


def tuners(source: str) -> Iterator[tuple[str, Any]]:
    """Yield name and autotuner of each Triton kernel in the source of a graph."""
    for name, code in re.findall(r"async_compile\.triton\('(\w+)', '''(.*?)'''", source, re.DOTALL):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.py"
            path.write_text(code.replace("triton_helpers.set_driver_to_gpu()", ""))
            spec = util.spec_from_file_location(name, path)
            assert spec and spec.loader
            module = util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            yield name, getattr(module, name)


def configurations(tuner: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield what Triton compiles of a generated kernel: source and options of each configuration."""
    from triton.compiler import ASTSource

    for each in tuner.configs:
        meta = tuner._create_compile_meta(each)
        source = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
        yield source, tuner._create_compile_options(each, meta)


def tried(subject: str, name: str, pairs: list[tuple[Any, dict[str, Any]]], target: Any) -> Compiled:
    """Compile a kernel in each of its configurations, and return the one with the most spilled registers.

    Args:
        subject: what the kernel is of.
        name: name of the kernel.
        pairs: source and options of each configuration.
        target: of Triton.
    """
    import triton

    found = []
    for source, options in pairs:
        try:
            made = triton.compile(source, target=target, options=options)
        except Exception as error:  # a compiler raises whatever its back end raises
            return Compiled(subject=subject, kernel=name, refused=f"{type(error).__name__}: {error}".splitlines()[0])
        spilled = re.search(r"\.vgpr_spill_count:\s+(\d+)", made.asm["amdgcn"])
        assert spilled, "the code has no count of spilled registers"
        size, shared = len(made.asm["hsaco"]), int(made.metadata.shared)
        found.append(Compiled(subject=subject, kernel=name, bytes=size, spilled=int(spilled[1]), shared=shared))
    return max(found, key=lambda each: (each.spilled, each.shared, each.bytes))


def main() -> int:
    """Print a JSON line a kernel: `python -m benchmarks.amd_kernels.compiling 32 42 gfx1100 gfx1201`."""
    lanes, units, *archs = sys.argv[1:]
    for arch, each in compiled(archs, int(lanes), int(units)):
        print(json.dumps({"arch": arch, **asdict(each)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
