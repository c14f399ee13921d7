# ruff: noqa: E501 (messages stand as they were printed)
"""Lists of causes of crashes, hangs, collectives and containers: the rest of the log puts the settled one first."""

import pytest

from benchmarks.diagnose_cases import answers, diagnosed, listed
from rocmatrix.diagnosis.diagnosis import possibilities
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

KNOWN = tuple(SIGNATURES)

FAULT = "Memory access fault by GPU node-1 (Agent handle: 0x1) on address 0x7f8d61545000. Reason: Page not present or supervisor privilege.\n"
HANG = "HW Exception by GPU node-1 (Agent handle: 0x1) reason :GPU Hang\n"
CRASH = "Segmentation fault (core dumped)\n"
VIOLATION = "Windows fatal exception: access violation\n"
EXCEPTION = "HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016\n"
TIMEOUT = (
    "[rank0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE) ran for 600001 ms\n"
)
EOF = 'Error: POST predict: Post "http://127.0.0.1:33603/completion": EOF\n'
WAITS = "INFO 01-01 00:00:00 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging.\n"


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("Linux version 6.18.4-arch1-1 (linux@archlinux)\n" + FAULT, "release of the Linux kernel"),
        ("kernel: 6.12.6-arch1-1\n" + CRASH, "release of the Linux kernel"),
        ("Device: AMD Radeon RX 6800 : native\n" + VIOLATION, "gfx103X"),
        ("VLLM_ROCM_USE_AITER=1 --enable-expert-parallel\n" + FAULT, "VLLM_ROCM_USE_AITER_MOE=0"),
        ("[aiter] import [module_fmha_v3]\n" + HANG, "fmha_v3"),
        ("Capturing batches (bs=1)\nsglang.launch_server\n" + EXCEPTION, "SGLANG_USE_AITER_AR=false"),
        ("File site-packages/jaxlib/xla_client.py\n" + CRASH, "--xla_gpu_enable_command_buffer="),
        ("Name: gfx1201\n" + TIMEOUT, "NCCL_PROTO=Simple"),
        (EOF, "num_ctx"),
        ('server config env="map[HSA_OVERRIDE_GFX_VERSION:10.3.0 HTTPS_PROXY:]"\n' + EOF, "no kernels for this architecture"),
        ("AMD Radeon AI PRO R9700\n" + 3 * WAITS, "NCCL_PROTO=Simple"),
        ("[aiter] start build [module_norm]\n" + 3 * WAITS, "compiled or tuned for the first time"),
        ('NCCL WARN Missing "iommu=pt" from kernel command line\n' + 3 * WAITS, "--disable-custom-all-reduce"),
        ("NCCL Error 2: unhandled system error\n", "NCCL_SOCKET_IFNAME"),
        ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 10\n(RayWorkerWrapper pid=1)\n", "Ray gives its workers"),
        ("Emulate Docker CLI using podman.\nError: setting up CDI devices: unresolvable CDI devices amd.com/gpu=all\n", "may not read it"),
        ("*** could not create command queue *** CL_OUT_OF_HOST_MEMORY\n", "HSA_SCRATCH_SINGLE_LIMIT=0"),
        ("AMD Radeon 780M Graphics\nError loading model.\n(Exit code: 18446744072635812000). Unknown error.\n", "no kernels for this card"),
        ("TorchRun --standalone --nnodes=2\nRendezvousTimeoutError\n", "waits for the others at its own address"),
    ],
)  # fmt: skip
def test_cause_that_the_log_names_stands_first(log, first):
    found = diagnosed(log, KNOWN)
    assert found.best is not None
    assert first in next(listed(found, found.best))[0]


@pytest.mark.parametrize(
    "log",
    [
        "UCX  ERROR Transport retry count exceeded on mlx5_0:1/RoCE\n",
        "NCCL WARN UDS: Sending data over socket /tmp/foo failed : Connection refused (111)\n",
        "OpenCL error CL_MEM_OBJECT_ALLOCATION_FAILURE in clCreateBuffer\n",
        "urllib.error.HTTPError: HTTP Error 403: Forbidden\n",
        "fatal: unable to access 'https://example.org/foo.git/': The requested URL returned error: 403\n",
    ],
)
def test_cause_that_words_alone_do_not_prove_is_not_stated_as_certain(log):
    assert not next(answers(diagnosed(log, KNOWN)))[1]


def test_override_of_another_generation_is_the_shown_cause_of_a_hang():
    log = "HSA_OVERRIDE_GFX_VERSION=10.3.0 python run.py\nAgent 2\n  Name: gfx1100\n" + HANG
    found = diagnosed(log, KNOWN)
    hang = next(match for match in found.ranked.failures if match.signature.id == "hw-exception-gpu-hang")
    first = possibilities(found, hang)[0]
    assert ("another architecture" in first.says, first.decided) == (True, True)


def test_worker_that_waited_once_is_no_failure():
    assert list(answers(diagnosed(WAITS, KNOWN))) == []
