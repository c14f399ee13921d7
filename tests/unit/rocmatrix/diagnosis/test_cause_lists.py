# ruff: noqa: E501 (messages stand as they were printed)
"""Lists of causes of common symptoms: what the rest of the log names stands first, and what threads settled on is listed."""

import pytest

from benchmarks.diagnose_cases import diagnosed, listed
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, listed_causes

KNOWN = tuple(SIGNATURES)

FAULT = "Memory access fault by GPU node-1 (Agent handle: 0x1) on address 0x7f8d61545000. Reason: Page not present or supervisor privilege.\n"
HANG = "HW Exception by GPU node-1 (Agent handle: 0x1) reason :GPU Hang\n"
ILLEGAL = "HIP error: an illegal memory access was encountered\n"
APERTURE = "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond the largest legal address. code: 0x29\n"


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("MIOpen(HIP): Info2 [PrepareInvoker] Preparing kernel: FooConv\n" + FAULT, "kernel of MIOpen ("),
        ("ggml_cuda_init: found 2 ROCm devices:\n" + FAULT, "kernel of llama.cpp ("),
        ("PYTORCH_TUNABLEOP_ENABLED=1 python run.py\n" + FAULT, "TunableOp tries"),
        ("LD_PRELOAD=./libforcegttalloc.so # force-host-alloction\n" + HANG, "HSA_ENABLE_SDMA=0"),
        ("Name: gfx1151\n" + ILLEGAL, "linux-firmware"),
        ("ggml_cuda_foo\n" + ILLEGAL, "revision of llama.cpp"),
        (APERTURE + "Kernel Name: _ZN5aiter50fmoe_fooE\n", "aiter off"),
        (
            "/lib/x86_64-linux-gnu/libRusticlOpenCL.so.1(+0x2a) [0x7f]\nSegmentation fault (core dumped)\n",
            "mesa-opencl-icd",
        ),
        ("Created TensorFlow device (/job:localhost)\nSegmentation fault (core dumped)\n", "LD_LIBRARY_PATH"),
        ("fish: Job 1, './foo.sh' terminated by signal SIGSEGV (Address boundary error)\n", "no code in the build"),
        ("HIP error: invalid device function\n  current device: 1, in function foo\n", "HIP_VISIBLE_DEVICES hides"),
        ("Unable to open /dev/kfd read-write: No such file or directory\nLinux 5.15.7-gentoo\n", "CONFIG_HSA_AMD"),
        ("RuntimeError: Foo8 is only supported for ROCm 6.5 and above\n", "before 6.5"),
        ("vfio-pci 0000:00:00.0: Unsupported reset method 'device_specific'\n", "vendor-reset"),
        ("sysfs: cannot create duplicate filename '/devices/foo/vbios_version'\n", "bound to it again"),
        ("RuntimeError: Invalid or unsupported data type Float8_foo.\n", "torch-directml"),
        ("kfd: amdgpu: skipped device 1002:744c, PCI rejects atomics 494<509\n", "version 509 of its compute firmware"),
        ("[drm] hw_init of IP block <uvd_v6_0> failed -60\nFatal error during GPU init\n", "block for video"),
        ("SMU: response:0xFFFFFFFF for index:0x4A\n[BACO] failed to exit\n", "amdgpu.runpm=0"),
        (
            "clBuildProgram failed: BUILD_PROGRAM_FAILURE\n/home/user/.cache/pocl/kcache/tempfile.cl:1:2: error: foo\n",
            "(pocl",
        ),
        ("failed to build program: -43\n", "hands the compiler an option"),
        (
            "thread 'main' panicked at /src/cubecl-hip-0.5.0/src/runtime.rs:85:5:\n",
            "does not know this card's architecture",
        ),
        ("error: use of undeclared identifier '_mm_pause'\n", "instructions of x86"),
        (
            "/opt/rocm/include/hip/hip_runtime_api.h:705:29: error: expected unqualified-id before numeric constant\n",
            "A macro of the program",
        ),
        (
            "LLVM ERROR: Cannot select: intrinsic %llvm.amdgcn.workgroup.id.x\n1. Running pass 'X86 DAG->DAG Instruction Selection'\n",
            "compiled for the host",
        ),
        (
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\nNET/OFI Selected Provider is cxi\n",
            "FI_MR_CACHE_MONITOR",
        ),
        ("amd_hsmp: probe with driver amd_hsmp failed with error -16\n", "Another driver already holds the device"),
        ("Initialize error, unknown device name: 'gfx906:sramecc+:xnack-'\n", "features after a colon"),
        (
            "libva error: va_getDriverName() failed with unknown libva error,driver_name=(null)\n",
            "LIBVA_DRIVER_NAME=radeonsi",
        ),
        ("Unable to initialize converter, error AMF_OPENCL_FAILED (code 19)\n", "update it (Adrenalin)"),
        ("#0 Tensile::PlaceholderLibrary::foo() from librocblas.so.5\nSegmentation fault (core dumped)\n", "copied by"),
        (
            "HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.24 GiB of which 15.09 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.\n",
            "integrated GPU (APU)",
        ),
        ("RuntimeError: No HIP GPUs are available\nAMD Windows driver 31.0.21925.1001\n", "31.0.21925"),
        (
            "RuntimeError: No HIP GPUs are available\nLD_LIBRARY_PATH=/opt/rocm/lib python foo.py\n",
            "loaded before those of the wheel",
        ),
        (
            "ggml_cuda_init: failed to initialize ROCm: no ROCm-capable device is detected\nLinux 6.6.87-microsoft-standard-WSL2\n",
            "Under WSL",
        ),
        (
            "WSL environment detected.\nhsa api call failure at: foo.cc:1\nAMD Radeon RX 6800 XT\n",
            "RDNA 3 and newer alone",
        ),
        ("WSL environment detected.\nhsa_init Failed, possibly no supported GPU devices\ngfx1030\n", "older cards"),
        ("amdgpu: ring gfx_0.0.0 timeout\nProcess information: process Xwayland pid 1\n", "release of Mesa"),
        ("AMD-Vi: Completion-Wait loop timed out\nvendor_reset_hook: installed\n", "reset_method has to be set"),
        (
            "amdgpu: SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x00000024\nFailed to set workload mask 0x1\n",
            "Navi 10",
        ),
        ('level=INFO msg="failure during GPU discovery"\nHSA_OVERRIDE_GFX_VERSION=11.0.0\n', "another architecture"),
        ("amdgpu 0000:03:00.0: [drm] *ERROR* [CRTC:1:crtc-0] flip_done timed out\nDMCUB error\n", "DMUB"),
        (
            "[drm:amdgpu_cs_ioctl [amdgpu]] *ERROR* Not enough memory for command submission!\nVM memory stats for proc foo(1) task foo(1) is non-zero when fini\n",
            "loses memory over days",
        ),
        (
            "ValueError: Free memory on device cuda:0 (2.02/63.59 GiB) on startup is less than desired GPU memory utilization (0.92, 58.51 GiB).\nllm.wake_up()\n",
            "did not give the card's memory back",
        ),
        (
            "could not write clocks table: io error: Invalid argument (os error 22)\nERROR lact_daemon: could not reset the clocks table\nOD setting (3, 718) is less than the minimum allowed (750)\n",
            "outside of what",
        ),
        ("Exception caught: map::at\nFirePro S10000 Tahiti\n", "old card"),
        ("modprobe: ERROR: could not insert 'amdgpu': Invalid argument\nSecureBoot enabled\n", "Secure Boot"),
        (
            "slurmd: error: Discarding the following config-only GPU due to lack of File specification\nAutoDetect=amdgpu\n",
            "AutoDetect knows rsmi",
        ),
        ("PermissionError: [Errno 13] Permission denied: '/data/foo'\navc:  denied  { read } for pid=1\n", "SELinux"),
    ],
)
def test_cause_that_the_log_names_stands_first(log, first):
    found = diagnosed(log, KNOWN)
    assert found.best is not None
    assert first in next(listed(found, found.best))[0]


@pytest.mark.parametrize(
    ("log", "listed"),
    [
        (HANG, "HSA_ENABLE_SDMA=0"),
        (HANG, "amdgpu.cwsr_enable=0"),
        (FAULT.replace("0x7f8d61545000", "(nil)"), "null pointer"),
        ("A tensor with all NaNs was produced in Unet.\n", "release of torch"),
        ("RuntimeWarning: invalid value encountered in cast\n", "--force-fp32"),
        ("Error: llama runner process has terminated: exit status 2\n", "rocBLAS has no files"),
        ("AttributeError: module 'aiter.foo' has no attribute 'Foo'\n", "installed torch"),
    ],
)
def test_cause_that_threads_settled_on_is_among_three(log, listed):
    assert any(listed in text for text in listed_causes(log)[:3])
