# ruff: noqa: E501 (messages stand as they were printed)
"""Lines of error messages as public reports show them: each is diagnosed as what the report turned out to be."""

import pytest

from tests.unit.rocmatrix.diagnosis.known import best

REPORTED = (
    (
        "pytorch/pytorch#104415",
        "bad-alloc",
        "Python 3.10.6\n>>> import torch\nterminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)",
    ),
    ("pytorch/examples#1313", "hip-invalid-device-function", "RuntimeError: HIP error: invalid device function"),
    (
        "lightning#8214",
        "nccl-watchdog-timeout",
        "[0] init.cc:1256 NCCL WARN Your program may be hanging, this may be caused by a collective mismatch around rank 1. Please check your collective calls",
    ),
    (
        "executorch#8001",
        "python-module-missing",
        "ModuleNotFoundError: No module named 'executorch.extension.training.pybindings._training_lib'",
    ),
    (
        "ort#24852",
        "extension-abi-mismatch",
        "ImportError: ../torch_interop_utils.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZTIN5torch8autograd6PyNodeE",
    ),
    (
        "geo-deep#560",
        "extension-abi-mismatch",
        "ImportError: /opt/conda/envs/geo_deep_env/lib/python3.10/site-packages/torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent",
    ),
    (
        "MTR#89",
        "extension-abi-mismatch",
        "ImportError: /x/attention_cuda.cpython-38-x86_64-linux-gnu.so: undefined symbol: _ZNK2at6Tensor8data_ptrIfEEPT_v",
    ),
    (
        "ROCm/legacy-rocm-build#6182",
        "gpu-memory-critical-in-use",
        "Memory critical error by agent node-0 (Agent handle: 0x55) on address 0x7f12. Reason: Memory in use.",
    ),
    (
        "gpt-neox#1310",
        "gpu-memory-access-fault",
        "GPU core dump failed\nMemory access fault by GPU node-9 (Agent handle: 0x7d5f990) on address 0x14a1cfe01000. Reason: Unknown.",
    ),
    (
        "nile#1",
        "hipblas-create-alloc-failed",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)` (createCublasHandle at /opt/conda/x.cpp:8)",
    ),
    (
        "catalyst#3",
        "hip-device-assert",
        "terminate called after throwing an instance of 'c10::CUDAError'\n  what():  CUDA error: device-side assert triggered",
    ),
    (
        "amd/playbooks#250",
        "bnb-rocm-binary-missing",
        "[bitsandbytes.cextension|ERROR]bitsandbytes library load error: Configured ROCm binary not found at /home/u/site-packages/bitsandbytes/libbitsandbytes_rocm82.so",
    ),
    (
        "bitsandbytes-foundation/bitsandbytes#1464",
        "hip-invalid-device-function",
        "Error invalid device function at line 224 in file /src/csrc/ops.hip",
    ),
    ("ROCm/bitsandbytes#40", "bnb-cublaslt", "error detectedException: cublasLt ran into an error!"),
    (
        "pytorch/pytorch#147377",
        "triton-pass-failed",
        'File "/root/triton/python/triton/backends/amd/compiler.py", line 244, in make_ttgir\n    pm.run(mod)\nRuntimeError: PassManager::run failed',
    ),
    (
        "k8s-plugin#65",
        "drm-auth-failed",
        "amdgpu_device_initialize: amdgpu_get_auth (1) failed (-1)\namdgpu_device_initialize: amdgpu_get_auth (1) failed (-1)\nFalse",
    ),
    (
        "ROCm-docker#116",
        "kfd-permission-denied",
        "ROCk module is loaded\nUnable to open /dev/kfd read-write: Permission denied\nFailed to get user name to check for video group membership",
    ),
    (
        "ROCm/legacy-rocm-build#1893",
        "docker-custom-device-kfd-missing",
        'docker: Error response from daemon: error gathering device information while adding custom device "/dev/kfd": no such file or directory.',
    ),
    (
        "ComfyUI-Docker#67",
        "docker-group-unknown",
        "docker: Error response from daemon: Unable to find group video: no matching entries in group file.",
    ),
    (
        "MIOpen#840",
        "miopen-unknown-error",
        "error: expecting exactly one host target but got 0.\nMIOpen Error: /root/x/tmp_dir.cpp:47: Can't execute cd /tmp/miopen\nfailed: miopenStatusUnknownError",
    ),
    (
        "CSC#1",
        "command-not-found",
        "slurmstepd: error: execve(): torchrun: No such file or directory\nsrun: error: g1301: task 0: Exited with exit code 2",
    ),
    (
        "ROCm/legacy-rocm-build#6563",
        "host-group-missing",
        "# usermod -a -G render,video $LOGNAME\nusermod: group 'render' does not exist",
    ),
    (
        "pytorch/pytorch#182616",
        "python-without-pip",
        "/opt/conda/envs/py_3.12/bin/python3: No module named pip\nmeson: command not found",
    ),
    (
        "pytorch/pytorch#134208",
        "invalid-device-pointer",
        "terminate called after throwing an instance of 'c10::Error'\n what(): invalid device pointer: 0x4c44000",
    ),
    (
        "ComfyUI#7400",
        "hip-invalid-device-function",
        "- **Exception Type:** RuntimeError\n- **Exception Message:** HIP error: invalid device function\nHIP kernel errors might",
    ),
    (
        "bitsandbytes-foundation/bitsandbytes#29",
        "hip-invalid-device-function",
        "Error invalid device function at line 679 in file /bitsandbytes/csrc/ops.hip",
    ),
    (
        "axolotl-ai-cloud/axolotl#937",
        "hip-device-assert",
        "../aten/src/ATen/native/cuda/Indexing.cu:1146: indexSelectLargeIndex: block: [34,0,0], thread: [31,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
    ),
    (
        "axolotl-ai-cloud/axolotl#568",
        "hip-device-assert",
        "CUDA Error: device-side assert triggered /tmp/pip-install-3n5798ar/dropout-layer-norm/csrc/layer_norm/ln_fwd_kernels.cuh 236",
    ),
    (
        "ROCm/legacy-rocm-build#4625",
        "rocblas-tensile-library-missing",
        "rocBLAS error: Cannot read /opt/rocm-6.4.0/lib/rocblas/library/TensileLibrary.dat: No such file or directory for GPU arch : gfx906",
    ),
    (
        "ZLUDA#4",
        "rocblas-tensile-library-missing",
        "rocBLAS error: Could not initialize Tensile host:\nregex_error(error_backref): The expression contained an invalid back reference.",
    ),
    (
        "pytorch/pytorch#47885",
        "rccl-duplicate-gpu",
        "frodo:33793:33885 [1] init.cc:573 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 83000",
    ),
    (
        "pytorch/pytorch#152077",
        "rccl-warn-device-failure",
        "RuntimeError: NCCL Error 1: unhandled cuda error\n4d1a2ae696c8:50555:50555 [0] NCCL WARN Cuda failure 'named symbol not found'",
    ),
    (
        "llamacpp-rocm#32",
        "process-crashed",
        "#12 0x000058fb846279ad in main ()\n[Inferior 1 (process 52963) detached]\nAborted (core dumped)",
    ),
    (
        "comfyui-rocm-docker#4",
        "killed-by-signal-9",
        "make: *** [Makefile:15: run] Error 137\nmake: *** [Makefile:24: run] Error 2",
    ),
)


@pytest.mark.parametrize(("report", "expected", "text"), REPORTED, ids=[report for report, _, _ in REPORTED])
def test_reported_message_is_diagnosed_rightly(report, expected, text):
    assert best(text + "\n") == expected
