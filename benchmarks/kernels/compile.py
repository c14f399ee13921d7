"""Compile Triton kernels for AMD architectures on a machine without a card, and print each one's figures as JSON lines.

    PYTHONPATH=FOLDER_WITH_TRITON python -m benchmarks.kernels.compile PLAN

PLAN is JSON: {"architectures": [names], "own": bool, "generated": file or null, "numbers": {architecture: [of kernels]}
or null for all, "configurations": how many of each kernel}. A process of its own for each architecture, made anew after
one that ended: LLVM ends its process on code that it cannot select, which no `try` catches.

Inductor's kernels are compiled with the block sizes and warps that its heuristics take on the architecture; torch is
given AMD's ROCm as its version and the architecture's properties for that. Nothing is run.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import multiprocessing
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIGURES = {
    "vgprs": r"\.vgpr_count:\s+(\d+)",
    "spilled": r"\.vgpr_spill_count:\s+(\d+)",
    "sgprs_spilled": r"\.sgpr_spill_count:\s+(\d+)",
    "scratch": r"\.private_segment_fixed_size:\s+(\d+)",
}
HEAD = """import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

"""
UNITS, LIMIT_S = 60, 120.0  # compute units where none are recorded; of one kernel


def lanes(architecture: str) -> int:
    """Return the lanes of a wavefront as torch reports them: 64 on GCN and CDNA, 32 from RDNA on."""
    return 64 if architecture.startswith(("gfx8", "gfx9")) else 32


def module_of(text: str, name: str) -> ModuleType:
    """Return a module of a source: Triton reads a kernel's text from its file.

    Args:
        text: Python source.
        name: of the module.
    """
    path = Path(tempfile.mkdtemp()) / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def figures(compiled: Any) -> dict[str, Any]:
    """Return registers, spills and shared memory of a code object, from its own notes."""
    text = compiled.asm["amdgcn"]
    found = {name: int(re.findall(pattern, text)[-1]) for name, pattern in FIGURES.items()}
    return {**found, "shared": int(compiled.metadata.shared), "bytes": len(compiled.asm.get("hsaco", b""))}


def properties(architecture: str) -> Any:
    """Return what torch reports of a card of the architecture, as far as Inductor's heuristics read it."""
    from torch._inductor.runtime.hints import DeviceProperties

    rows = json.loads((ROOT / "trainer" / "device" / "architectures.json").read_text())
    peaks: list[dict[str, Any]] = next((row["peaks"] for row in rows if row["name"] == architecture), [])
    return DeviceProperties(
        type="hip",
        index=0,
        multi_processor_count=peaks[0]["units"] if peaks else UNITS,
        cc=architecture,  # a name, where NVIDIA has a number
        major=int(architecture[3:-2]),
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        warp_size=lanes(architecture),
    )


def without_linker() -> bool:
    """Have a Triton that takes ROCm's linker stop before it, where that is not there; return whether it does.

    From 3.5 on Triton links by itself. Registers and spills stand in the assembly, which comes before.
    """
    from triton.backends import backends

    backend = backends["amd"].compiler
    try:
        found = getattr(backend, "path_to_rocm_lld", lambda: "its own")()
    except Exception:  # Triton raises a bare one
        found = None
    if found is None:
        backend.make_hsaco = staticmethod(lambda source, metadata, options: b"")
        backend.path_to_rocm_lld = staticmethod(lambda: "true")  # asked for its version alone
    return found is None


def own_sources() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the trainer's own kernels, each as Triton's source and its options."""
    from trainer.models.fast.kernels import triton_softmax

    found = gelu_sources() | nf4_sources() | gated_sources()
    for type_ in ("bf16", "fp16", "fp32"):
        types = {"logits": f"*{type_}", "labels": "*i64", "scales": "*fp32", "losses": "*fp32"}
        types |= dict.fromkeys(("stride", "vocabulary", "ignored"), "i32")
        source = ast_source(triton_softmax.softmax_rows, types, {"PIECE": triton_softmax.PIECE})
        found[f"softmax_rows {type_}"] = (source, {"num_warps": triton_softmax.WARPS})
    return found


def gelu_sources() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the kernels of GELU and its backward pass, as `own_sources` does; fp16 of one form alone."""
    from trainer.models.fast.kernels import triton_gelu as made

    found: dict[str, tuple[Any, dict[str, Any]]] = {}
    for type_, tanh in (("bf16", False), ("bf16", True), ("fp16", False)):
        name, how = f"{type_}{', tanh' if tanh else ''}", {"num_warps": made.WARPS}
        types = {"inputs": f"*{type_}", "outputs": f"*{type_}", "count": "i32"}
        forward = ast_source(made.gelu_forward, types, {"PIECE": made.PIECE, "TANH": tanh})
        types = dict.fromkeys(("inputs", "upstream", "again", "gradient"), f"*{type_}") | {"sums": "*fp32"}
        types |= dict.fromkeys(("tokens", "width"), "i32")
        sizes = {"ROWS": made.ROWS, "COLUMNS": made.COLUMNS, "TANH": tanh}
        backward = ast_source(made.gelu_backward, types, sizes)
        found |= {f"gelu_forward {name}": (forward, how), f"gelu_backward {name}": (backward, how)}
    return found


def gated_sources() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the backward pass of gated activations, as `own_sources` does; fp16 of one kind alone."""
    from trainer.models.fast.kernels import triton_gated as made

    found: dict[str, tuple[Any, dict[str, Any]]] = {}
    for type_, kind in (("bf16", "silu"), ("bf16", "gelu"), ("bf16", "tanh"), ("fp16", "silu")):
        types = {"joint": f"*{type_}", "gradient": f"*{type_}", "width": "i32"}
        constants = {"PIECE": made.PIECE, "KIND": made.KINDS[kind]}
        source = ast_source(made.gated_backward, types, constants)
        found[f"gated_backward {type_}, {kind}"] = (source, {"num_warps": made.WARPS})
    return found


def nf4_sources() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the kernel that dequantises 4-bit weights, as `own_sources` does."""
    import triton.language as tl

    from trainer.models.adapters.nf4 import BLOCK
    from trainer.models.fast.kernels import triton_nf4 as made

    types = {"packed": "*u8", "scales": "*fp32", "levels": "*fp32", "outputs": "*i32", "count": "i32"}
    found: dict[str, tuple[Any, dict[str, Any]]] = {}
    for type_, kind in (("bf16", tl.bfloat16), ("fp16", tl.float16)):
        for rows, apart in (("", 768), (", rows apart", 784)):
            constants = {"WIDTH": 768, "ROW": apart, "BYTES": BLOCK // 2, "PIECE": made.PIECE, "KIND": kind}
            source = ast_source(made.nf4_pairs, types, constants)
            found[f"nf4_pairs {type_}{rows}"] = (source, {"num_warps": made.WARPS})
    return found


def ast_source(function: Any, types: dict[str, str], constants: dict[str, Any]) -> Any:
    """Return Triton's source of a kernel; before 3.2 its arguments were counted, not named.

    Args:
        function: what `triton.jit` made.
        types: of its arguments by name.
        constants: of its other arguments by name.
    """
    from triton.compiler import ASTSource

    if "constexprs" in inspect.signature(ASTSource.__init__).parameters:
        named = types | dict.fromkeys(constants, "constexpr")
        return ASTSource(fn=function, signature=named, constexprs=constants)
    place = function.arg_names.index
    by_number = {place(name): type_ for name, type_ in types.items()}
    return ASTSource(
        fn=function, signature=by_number, constants={place(name): value for name, value in constants.items()}
    )


def generated_sources(kernel: dict[str, Any], number: int, architecture: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield a kernel of Inductor's in each configuration that its heuristics take on the architecture.

    Args:
        kernel: as benchmarks.kernels.take wrote it.
        number: its place in the file.
        architecture: gfx name.
    """
    from torch._inductor.runtime import triton_heuristics
    from triton.compiler import ASTSource

    module = module_of(HEAD + "@triton.jit\n" + kernel["source"], f"kernel_{number}")
    scope: dict[str, Any] = {name: getattr(triton_heuristics, name) for name in dir(triton_heuristics)}
    scope |= {"__file__": module.__file__, "DeviceProperties": lambda **given: properties(architecture)}
    from torch._inductor.runtime import hints

    scope = {**{name: getattr(hints, name) for name in dir(hints)}, **scope}
    tuner = eval(kernel["heuristics"], scope)(module.kernel)
    for each in tuner.configs:
        meta = tuner._create_compile_meta(each)
        source = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
        yield source, tuner._create_compile_options(each, meta)


def compiled(source: Any, options: dict[str, Any], architecture: str) -> dict[str, Any]:
    """Return a kernel's figures, or why Triton refuses it, and the seconds that either took.

    Args:
        source: Triton's ASTSource.
        options: of the compilation.
        architecture: gfx name.
    """
    import triton
    from triton.backends.compiler import GPUTarget

    began = time.monotonic()
    try:
        target = GPUTarget("hip", architecture, lanes(architecture))
        found = figures(triton.compile(source, target=target, options=options))
    except Exception as error:  # whatever the compiler raises is its refusal
        lines = str(error).strip().splitlines() or [""]
        found = {"refused": f"{type(error).__name__}: {lines[0]}"[:200]}
    return {**found, "options": {"num_warps": options.get("num_warps")}, "seconds": round(time.monotonic() - began, 2)}


def jobs(plan: dict[str, Any], architecture: str) -> list[tuple[str, int | None]]:
    """Return the kernels for an architecture: names of the trainer's own, numbers of Inductor's."""
    found: list[tuple[str, int | None]] = [(name, None) for name in own_sources()] if plan["own"] else []
    if plan["generated"]:
        kernels = json.loads(Path(plan["generated"]).read_text())["kernels"]
        numbers = range(len(kernels)) if plan["numbers"] is None else plan["numbers"][architecture]
        found += [(kernels[number]["name"], number) for number in numbers]
    return found


def compile_all(plan: dict[str, Any], architecture: str, todo: list[tuple[str, int | None]], pipe: Connection) -> None:
    """Compile kernels one after the other and send each one's rows; the process may end in any of them."""
    kernels = json.loads(Path(plan["generated"]).read_text())["kernels"] if plan["generated"] else []
    for name, number in todo:
        if number is None:
            rows = [compiled(*own_sources()[name], architecture)]
        else:
            made = generated_sources(kernels[number], number, architecture)
            most = plan["configurations"]
            rows = [compiled(*each, architecture) for _, each in zip(range(most), made, strict=False)]
        about = {"architecture": architecture, "kernel": name, "number": number}
        pipe.send([{**about, "configuration": place, **row} for place, row in enumerate(rows)])
    pipe.close()


def rows_of(plan: dict[str, Any], architecture: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of one architecture; a kernel in which the process ended is refused by that."""
    todo = jobs(plan, architecture)
    fork = multiprocessing.get_context("fork")
    while todo:
        receiver, sender = fork.Pipe(duplex=False)
        child = fork.Process(target=partial(compile_all, plan, architecture, list(todo), sender))
        child.start()
        sender.close()
        ended = f"no result within {LIMIT_S:.0f} s"
        try:
            while todo and receiver.poll(LIMIT_S):
                yield from receiver.recv()
                todo.pop(0)
        except EOFError:
            child.join()
            ended = f"the compiler ended its process with status {child.exitcode}"
        if child.is_alive() and todo:
            child.kill()
        child.join()
        if todo:
            name, number = todo.pop(0)
            about = {"architecture": architecture, "kernel": name, "number": number, "configuration": 0}
            yield {**about, "refused": ended, "seconds": 0.0}


def main() -> int:
    """Print a line for each kernel, architecture and configuration."""
    plan = json.loads(sys.argv[1])
    import torch
    import triton

    torch.version.hip = "7.2"  # a stand-in: Inductor's heuristics then take what they take on AMD cards
    if plan["generated"]:
        from torch._inductor.runtime import triton_helpers, triton_heuristics  # noqa: F401  # once, before the forks
    versions = {"triton": triton.__version__, "torch": torch.__version__, "linked": not without_linker()}
    print(json.dumps(versions), flush=True)
    for architecture in plan["architectures"]:
        for row in rows_of(plan, architecture):
            print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
