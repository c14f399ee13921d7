# ruff: noqa: E501 (lines stand as they are printed)
"""Logs of runs that went well: no cause may be named in any of them.

    python -m benchmarks.diagnose_healthy          about 60 logs of real tools run here, 376 synthetic ones, transcripts
    python -m benchmarks.diagnose_healthy --real   the real ones only

*real*: what package managers, compilers, container engine and test runner print on this machine when they succeed,
and logs that the machine holds already. *synthetic*: lines as trainers, servers, drivers and clusters print them in
healthy runs, harmless warnings among them, put together with other numbers by a seeded generator. Most kinds of them
stand in benchmarks/diagnosis_cases/healthy.yaml. *transcript*: outputs of commands on machines that work, whose values
could be taken for a contradiction (healthy_transcripts.yaml).
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

import yaml

from benchmarks.diagnose_cases import CASES, diagnosed
from rocmatrix.diagnosis import project_errors, signature

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "diagnose_healthy.json"
KEPT_KINDS = CASES / "healthy.yaml"
KEPT_TRANSCRIPTS = CASES / "healthy_transcripts.yaml"
KEPT_LOGS = ("/var/log/dpkg.log", "/var/log/apt/history.log", "/var/log/apt/term.log", "/var/log/bootstrap.log",
             "/var/log/alternatives.log", "/proc/cpuinfo", "/proc/meminfo", "/proc/modules", "/proc/cmdline")  # fmt: skip
PACKAGES = ("cmake", "ninja-build", "libnuma1", "libdrm2", "python3-venv", "libstdc++6", "pciutils", "kmod", "git",
            "libelf1", "libopenblas0", "openmpi-bin", "rdma-core", "jq", "zstd", "hwloc", "numactl", "valgrind")  # fmt: skip
PYTHON = sys.executable
SECONDS = 60
COMMANDS: tuple[tuple[str, ...], ...] = (
    *(("apt-get", "-s", "install", "-y", name) for name in PACKAGES),
    *(("apt-cache", "policy", name) for name in PACKAGES[:6]),
    (PYTHON, "-m", "pip", "list", "-v"),
    (PYTHON, "-m", "pip", "debug", "--verbose"),
    (PYTHON, "-m", "pip", "config", "debug"),
    (PYTHON, "-m", "torch.utils.collect_env"),
    (PYTHON, "-c", "import torch; print(torch.__config__.show())"),
    (PYTHON, "-v", "-c", "import json"),
    (PYTHON, "-m", "compileall", "rocmatrix/diagnosis"),
    (PYTHON, "-m", "ruff", "check", "rocmatrix/diagnosis"),
    (PYTHON, "-m", "pytest", "-q", "tests/unit/rocmatrix/diagnosis/test_pattern.py"),
    (PYTHON, "-m", "pytest", "-v", "tests/unit/rocmatrix/diagnosis/test_reading.py"),
    (PYTHON, "-c", "TRAIN"),
    ("docker", "version"), ("docker", "info"), ("docker", "images"),
    ("gcc", "-v", "-x", "c", "-o", "/dev/null", "-"),
    ("g++", "-v", "-O2", "-x", "c++", "-o", "/dev/null", "-"),
    ("ldconfig", "-p"), ("mount",), ("df", "-h"), ("env",), ("uname", "-a"), ("lscpu",), ("git", "log", "--stat", "--format=%h", "-20"),
    ("dpkg", "-l"), ("apt", "list", "--installed"),
)  # fmt: skip
TRAINING = """
import torch
torch.manual_seed({seed})
layer = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(layer.parameters())
for step in range(200):
    loss = (layer(torch.randn(32, 8)) ** 2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print("step %d loss=%.4f" % (step, loss))
"""
PROGRAM = b"int main(void) { return 0; }\n"
KINDS: dict[str, tuple[str, ...]] = {
    "training": (
        "[rank{n}]: epoch {n} step {n} loss={x} lr=1e-4 grad_norm={x} {n} tok/s",
        "UserWarning: expandable_segments not supported on this platform (Triggered internally at CUDAAllocatorConfig.h:{n}.)",
        "MIOpen(HIP): Warning [IsEnoughWorkspace] [GetSolutionsFallback WTI] Solver <GemmFwdRest>, workspace required: {n}, provided ptr: 0 size: 0",
        "saved checkpoint step_{n}.pt in {x} s",
    ),
    "rccl": (
        "node{n}:{n}:{n} [{n}] NCCL INFO Channel {n:02d}/64 : 0[0] -> 1[1] via P2P/IPC comm 0x{n} nRanks 08",
        "node{n}:{n}:{n} [{n}] NCCL INFO NET/Plugin: Could not find: librccl-net.so. Using internal network plugin.",
        "node{n}:{n}:{n} [{n}] NCCL INFO Failed to open libibverbs.so[.1]",
        "node{n}:{n}:{n} [{n}] NCCL INFO comm 0x{n} rank {n} nranks 8 cudaDev {n} busId {n} commId 0x{n} - Init COMPLETE",
    ),
    "boot": (
        "[    {x}] [drm] amdgpu kernel modesetting enabled.",
        "[    {x}] amdgpu: Virtual CRAT table created for CPU",
        "[    {x}] amdgpu 0000:{n:02x}:00.0: amdgpu: VRAM: {n}M 0x0000008000000000 - 0x00000085FEFFFFFF ({n}M used)",
        "[    {x}] kfd kfd: amdgpu: added device 1002:744c",
        "[    {x}] amdgpu 0000:{n:02x}:00.0: amdgpu: SMU is initialized successfully!",
        "[    {x}] pci 0000:{n:02x}:00.0: BAR 0: assigned [mem 0x{n}00000000-0x{n}ffffffff 64bit pref]",
        "[    {x}] ACPI BIOS Error (bug): Could not resolve symbol [\\\\_SB.PCI0], AE_NOT_FOUND ({n}/psargs-{n})",
    ),
    "serving": (
        "INFO 11-22 10:{n:02d}:11 [__init__.py:{n}] Automatically detected platform rocm.",
        "INFO 11-22 10:{n:02d}:12 [model_runner.py:{n}] Loading model weights took {x} GB",
        '(APIServer pid={n}) INFO: 10.0.0.{n}:443 - "POST /v1/completions HTTP/1.1" 200 OK',
        "DEBUG 11-22 10:{n:02d}:10 [__init__.py:{n}] CUDA platform is not available because: NVML Shared Library Not Found",
        "DEBUG 11-22 10:{n:02d}:10 [__init__.py:{n}] Confirmed ROCm platform is available.",
    ),
    "comfy": (
        "Total VRAM {n} MB, total RAM {n} MB", "pytorch version: 2.9.1+rocm6.4", "AMD arch: gfx1100", "ROCm version: (6, 4)",
        "Device: cuda:0 AMD Radeon RX 7900 XTX : native", "Prompt executed in {x} seconds",
        "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.",
    ),
    "ollama": (
        'time=2026-11-22T10:{n:02d}:01Z level=INFO source=routes.go:{n} msg="Listening on 127.0.0.1:11434 (version 0.9.{n})"',
        'time=2026-11-22T10:{n:02d}:02Z level=INFO source=amd_linux.go:{n} msg="amdgpu is supported" gpu=GPU-{n} gpu_type=gfx1100',
        'time=2026-11-22T10:{n:02d}:02Z level=WARN source=amd_linux.go:61 msg="ollama recommends running the https://www.amd.com/en/support/linux-drivers" error="amdgpu version file missing: /sys/module/amdgpu/version stat /sys/module/amdgpu/version: no such file or directory"',
        'time=2026-11-22T10:{n:02d}:03Z level=INFO source=types.go:130 msg="inference compute" id=GPU-{n} library=rocm compute=gfx1100 total="24.0 GiB"',
    ),
    "cluster": (
        "I1122 10:{n:02d}:00.000000 1 manager.go:42] Starting device plugin manager",
        "I1122 10:{n:02d}:00.000000 1 manager.go:66] Handling incoming signals",
        "I1122 10:{n:02d}:01.000000 1 manager.go:71] Received new list of plugins: [gpu]",
        "I1122 10:{n:02d}:01.000000 1 plugin.go:136] Found {n} AMDGPUs",
        "{n}s  Normal  Scheduled  pod/train-{n}  Successfully assigned default/train-{n} to node{n}",
        '{n}s  Normal  Pulled     pod/train-{n}  Container image "rocm/pytorch" already present on machine',
        "slurmctld: sched: Allocate JobId={n} NodeList=node{n} #CPUs={n} Partition=gpu",
        '"Status": "running", "Running": true, "OOMKilled": false, "Dead": false, "Pid": {n}, "ExitCode": 0, "Error": "",',
        "2026-11-22T10:{n:02d}:00.123Z container die {n}aa (execDuration={n}, exitCode=0, image=rocm/pytorch, name=train-{n})",
        "{n}s  Warning  Unhealthy  pod/train-{n}  Startup probe failed: dial tcp 10.0.0.{n}:8000: connect: connection refused",
        "slurmstepd: task {n}: exited with exit code 0",
    ),
    "cmake": (
        "-- Found Threads: TRUE", "-- Could NOT find CUDA (missing: CUDA_TOOLKIT_ROOT_DIR CUDA_NVCC_EXECUTABLE)",
        "-- Could NOT find OpenMP_CXX (missing: OpenMP_CXX_FLAGS OpenMP_CXX_LIB_NAMES)", "-- The HIP compiler identification is Clang {n}.0.0",
        "[{n}/{n}] Building HIP object CMakeFiles/a.dir/kernel_{n}.hip.o", "CMake Warning: Manually-specified variables were not used by the project:\n\n    BUILD_TESTING",
        "{n} warnings generated when compiling for gfx1100.",
    ),
    "dkms": (
        "Loading new amdgpu-6.16.{n}-2255209.24.04 DKMS files...", "Building for 6.8.0-{n}-generic", "Building initial module for 6.8.0-{n}-generic",
        "DKMS make.log for amdgpu-6.16.{n} for kernel 6.8.0-{n}-generic (x86_64)", "Done.", "depmod...",
        "W: Possible missing firmware /lib/firmware/amdgpu/ip_discovery.bin for module amdgpu",
    ),
    "build": (
        "#{n} [stage-{n} {n}/9] RUN pip install torch --index-url https://download.pytorch.org/whl/rocm6.4",
        "#{n} {x} Collecting torch==2.9.1", "#{n} {x}   Downloading torch-2.9.1%2Brocm6.4-cp312-cp312-manylinux_2_28_x86_64.whl (4.{n} GB)",
        "#{n} {x} Successfully installed torch-2.9.1+rocm6.4 pytorch-triton-rocm-3.5.1", "#{n} DONE {x}s", "#{n} exporting to image",
        "WARNING: Running pip as the 'root' user can result in broken permissions and conflicting behaviour with the system package manager",
    ),
}  # fmt: skip
VARIANTS, KEPT_VARIANTS, LINES = 16, 4, 120


def synthetic() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every synthetic log."""
    for kind, forms in KINDS.items():
        for seed in range(VARIANTS):
            yield _log(kind, seed, forms, _filled)
    for kind, forms in kept_kinds().items():
        for seed in range(KEPT_VARIANTS):
            yield _log(kind, seed, forms, _numbered)


def transcripts() -> Iterator[tuple[str, str]]:
    """Yield what each healthy transcript is of, and its text."""
    for row in yaml.safe_load(KEPT_TRANSCRIPTS.read_text(encoding="utf-8")):
        yield f"transcript {row['about'][:80]}", row["log"]


def kept_kinds() -> dict[str, tuple[str, ...]]:
    """Return the forms of lines of benchmarks/diagnosis_cases/healthy.yaml, by kind of log."""
    return {kind: tuple(forms) for kind, forms in yaml.safe_load(KEPT_KINDS.read_text(encoding="utf-8")).items()}


def _log(kind: str, seed: int, forms: Sequence[str], filled: Callable[[str, random.Random], str]) -> tuple[str, str]:
    """Return the name of one synthetic log and its text: every form, and more of them by chance."""
    chance = random.Random(f"{kind} {seed}")
    rows = [*forms, *(chance.choice(forms) for _ in range(LINES - len(forms)))]
    chance.shuffle(rows)
    return f"synthetic {kind} {seed}", "\n".join(filled(row, chance) for row in rows) + "\n"


def _numbered(row: str, chance: random.Random) -> str:
    """Fill the places of a kept form; other braces stand for themselves."""
    return row.replace("{n}", str(chance.randrange(1, 64))).replace("{x}", f"{chance.random() * 9 + 1:.3f}")


def _filled(row: str, chance: random.Random) -> str:
    return row.replace("\\", "").format(n=chance.randrange(1, 64), x=f"{chance.random() * 9 + 1:.3f}")


def real() -> Iterator[tuple[str, str]]:
    """Yield the name and the output of every real tool that is here and succeeds, and of logs the machine holds."""
    for path in map(Path, KEPT_LOGS):
        if path.is_file() and (text := path.read_text(encoding="utf-8", errors="replace")):
            yield f"file {path}", text
    for argv in COMMANDS:
        for run, words in enumerate(_spelled(argv)):
            done = _output(words)
            if done:
                yield f"{' '.join(argv)[:60]} {run}", done


def _spelled(argv: tuple[str, ...]) -> list[tuple[str, ...]]:
    if argv[-1] != "TRAIN":
        return [argv]
    return [(*argv[:-1], TRAINING.format(seed=seed)) for seed in range(6)]


def _output(argv: tuple[str, ...]) -> str | None:
    """Return what a command prints, or None where it is missing, fails or takes too long: that is no healthy run."""
    if shutil.which(argv[0]) is None:
        return None
    given = PROGRAM if argv[0] in ("gcc", "g++") else b""
    try:
        done = subprocess.run(argv, cwd=ROOT, input=given, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        print(f"left out, over {SECONDS} s: {' '.join(argv)[:80]}", file=sys.stderr)
        return None
    return (done.stdout + done.stderr).decode(errors="replace") if done.returncode == 0 else None


def main() -> None:
    """Diagnose every healthy log, print what is named in one, and keep the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    known = (*signature.load(ROOT), *project_errors.signatures())
    counts: Counter[str] = Counter()
    named: list[str] = []
    for name, text in (*real(), *(() if options.real else (*synthetic(), *transcripts()))):
        found = diagnosed(text, known)
        best = found.best
        kind = name.split()[0]
        counts[kind if kind in ("synthetic", "transcript") else "real"] += 1
        if best is not None:
            named.append(f"{name}: {best.signature.id}: {best.text[:160]}")
        named += [f"{name}: similar to {one.source}: {one.cause}" for one in found.similar]
    result = {"date": date.today().isoformat(), "logs": dict(counts), "with a cause named": named}
    print(json.dumps(result, indent=1))
    if not options.real:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
